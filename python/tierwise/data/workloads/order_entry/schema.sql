-- role: data
CREATE TABLE customer (
    c_id bigint NOT NULL,
    c_balance bigint NOT NULL,
    c_payments integer NOT NULL,
    c_orders integer NOT NULL,
    c_last_order bigint NOT NULL,
    c_name varchar(24) NOT NULL,
    c_data varchar(250) NOT NULL
);

CREATE TABLE stock (
    s_item bigint NOT NULL,
    s_quantity bigint NOT NULL,
    s_sold bigint NOT NULL,
    s_price integer NOT NULL,
    s_data varchar(100) NOT NULL
);

CREATE TABLE orders (
    o_id bigint NOT NULL,
    o_customer bigint NOT NULL,
    o_lines integer NOT NULL,
    o_total bigint NOT NULL
);

CREATE TABLE order_line (
    ol_order bigint NOT NULL,
    ol_line integer NOT NULL,
    ol_item bigint NOT NULL,
    ol_quantity integer NOT NULL,
    ol_amount bigint NOT NULL
);
