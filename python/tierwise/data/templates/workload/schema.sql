-- Statements in PostgreSQL's dialect that are run before the tables are filled; other engines get them in
-- theirs. A line "-- role: data" or "-- role: index" says where what follows is to lie.

-- role: data
CREATE TABLE account (
    a_id bigint NOT NULL,
    a_owner varchar(30) NOT NULL,
    a_balance bigint NOT NULL
);

CREATE TABLE entry (
    e_id bigint NOT NULL,
    e_account bigint NOT NULL,
    e_amount bigint NOT NULL
);
