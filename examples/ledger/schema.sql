-- role: data
CREATE TABLE account (
    a_id bigint NOT NULL,
    a_number varchar(20) NOT NULL,
    a_balance bigint NOT NULL
);

CREATE TABLE entry (
    e_id bigint NOT NULL,
    e_day bigint NOT NULL,
    e_account bigint NOT NULL,
    e_amount bigint NOT NULL
);

-- role: index
CREATE INDEX entry_account ON entry (e_account);
