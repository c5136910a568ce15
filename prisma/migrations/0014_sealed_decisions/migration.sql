-- That a person decided this, and what: made with a secret that is not in the database. A vote that approves, a decision of on-call.
ALTER TABLE votes ADD COLUMN seal text;
ALTER TABLE resolutions ADD COLUMN seal text;
-- That the policy let this through by itself; of what people are asked for there is none.
ALTER TABLE operations ADD COLUMN seal text;
