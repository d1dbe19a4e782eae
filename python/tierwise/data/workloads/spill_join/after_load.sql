-- role: data
ANALYZE parent;
ANALYZE child;
