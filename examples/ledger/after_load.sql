-- role: index
ALTER TABLE account ADD PRIMARY KEY (a_id);
ALTER TABLE entry ADD PRIMARY KEY (e_id);
