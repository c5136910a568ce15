-- A wrong click is opened again with a record of its own, what waits for a second person runs out, and an incident is closed
-- with a reason. Only additions: a process of the version before goes on working beside this one.
ALTER TABLE resolutions DROP CONSTRAINT resolutions_verb_is_known;
ALTER TABLE resolutions ADD CONSTRAINT resolutions_verb_is_known CHECK (verb IN ('confirm','reject','retry','reopen'));
-- Proposals that wait for a second person: few, and looked at again and again.
CREATE INDEX resolutions_proposed ON resolutions (expires_at) WHERE state = 'proposed';

ALTER TABLE freeze_switches ADD COLUMN thaw_expires_at timestamptz;
ALTER TABLE incidents ADD COLUMN close_reason text;
