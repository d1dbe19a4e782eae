-- role: data
CREATE TABLE parent (
    p_id bigint NOT NULL,
    p_pad varchar(2000) NOT NULL
);

CREATE TABLE child (
    c_id bigint NOT NULL,
    c_parent bigint NOT NULL,
    c_pad varchar(2000) NOT NULL
);
