-- role: data
CREATE TABLE t (
    owner varchar(30) NOT NULL,
    object_name varchar(30) NOT NULL,
    subobject_name varchar(30),
    object_id bigint,
    data_object_id bigint,
    object_type varchar(19) NOT NULL,
    created timestamp NOT NULL,
    last_ddl_time timestamp NOT NULL,
    timestamp varchar(19) NOT NULL,
    status varchar(7) NOT NULL,
    temporary2 varchar(1) NOT NULL,
    generated varchar(1) NOT NULL,
    secondary varchar(1) NOT NULL,
    namespace bigint NOT NULL,
    edition_name varchar(30),
    padding1 varchar(4000),
    padding2 varchar(3500),
    attribute varchar(32)
) WITH (toast_tuple_target = 8160);

CREATE TABLE testwrites (
    owner varchar(30) NOT NULL,
    object_name varchar(30) NOT NULL,
    subobject_name varchar(30),
    object_id bigint,
    data_object_id bigint,
    object_type varchar(19) NOT NULL,
    created timestamp NOT NULL,
    last_ddl_time timestamp NOT NULL,
    timestamp varchar(19) NOT NULL,
    status varchar(7) NOT NULL,
    temporary2 varchar(1) NOT NULL,
    generated varchar(1) NOT NULL,
    secondary varchar(1) NOT NULL,
    namespace bigint NOT NULL,
    edition_name varchar(30),
    padding1 varchar(4000),
    padding2 varchar(3500),
    attribute varchar(32)
) WITH (toast_tuple_target = 8160);
