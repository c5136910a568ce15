-- Tickets that somebody asks for beside their filer, by who does: few, and each person's App Home asks for theirs.
CREATE INDEX tickets_joined ON tickets USING gin (filers) WHERE cardinality(filers) > 1;
