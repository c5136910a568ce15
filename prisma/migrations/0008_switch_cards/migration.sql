-- A switch has turned and the cards of what it holds back do not all say so yet: whoever turned it may have died in between.
ALTER TABLE freeze_switches ADD COLUMN cards_behind boolean NOT NULL DEFAULT false;
