-- Primary keys (TPC-H specification, clause 1.4.2), and the indexes on foreign keys and dates that clause 1.5.4
-- allows. Each is named after the table and its first column, and is one lap where the load is measured.
-- role: index
ALTER TABLE region ADD PRIMARY KEY (r_regionkey);
ALTER TABLE nation ADD PRIMARY KEY (n_nationkey);
ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey);
ALTER TABLE customer ADD PRIMARY KEY (c_custkey);
ALTER TABLE part ADD PRIMARY KEY (p_partkey);
ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey);
ALTER TABLE orders ADD PRIMARY KEY (o_orderkey);
ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber);
CREATE INDEX supplier_nationkey ON supplier (s_nationkey);
CREATE INDEX customer_nationkey ON customer (c_nationkey);
CREATE INDEX partsupp_suppkey ON partsupp (ps_suppkey);
CREATE INDEX orders_custkey ON orders (o_custkey);
CREATE INDEX orders_orderdate ON orders (o_orderdate);
CREATE INDEX lineitem_partkey ON lineitem (l_partkey, l_suppkey);
CREATE INDEX lineitem_suppkey ON lineitem (l_suppkey);
CREATE INDEX lineitem_shipdate ON lineitem (l_shipdate);
-- role: data
ANALYZE region;
ANALYZE nation;
ANALYZE supplier;
ANALYZE customer;
ANALYZE part;
ANALYZE partsupp;
ANALYZE orders;
ANALYZE lineitem;
