-- role: index
ALTER TABLE customer ADD PRIMARY KEY (c_id);
ALTER TABLE stock ADD PRIMARY KEY (s_item);
ALTER TABLE orders ADD PRIMARY KEY (o_id);
ALTER TABLE order_line ADD PRIMARY KEY (ol_order, ol_line);
