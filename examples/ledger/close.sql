UPDATE account SET a_balance = (SELECT coalesce(sum(e_amount), 0) FROM entry WHERE e_account = a_id);
