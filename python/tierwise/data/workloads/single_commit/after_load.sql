-- role: index
ALTER TABLE account ADD PRIMARY KEY (a_id);
