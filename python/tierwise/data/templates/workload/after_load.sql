-- Statements that are run when the tables are filled. Keys and indexes that stand here go to the device of the
-- role index, and loading is faster without them.

-- role: index
ALTER TABLE account ADD PRIMARY KEY (a_id);
ALTER TABLE entry ADD PRIMARY KEY (e_id);
