-- role: index
CREATE UNIQUE INDEX t_object_id ON t (object_id);

-- role: data
ANALYZE t;
