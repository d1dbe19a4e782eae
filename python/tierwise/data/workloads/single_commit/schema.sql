-- role: data
CREATE TABLE account (
    a_id bigint NOT NULL,
    a_balance bigint NOT NULL
);
