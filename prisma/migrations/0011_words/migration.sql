-- Confirmations of people, newest first: those that rest on a word are held against the provider.
CREATE INDEX resolutions_confirmed ON resolutions (updated_at) WHERE verb = 'confirm' AND state = 'applied';
