-- What a person clicked, sent or typed, as it came over Slack's wire: made with a secret that is not in the database.
ALTER TABLE slack_inbox ADD COLUMN seal text;
