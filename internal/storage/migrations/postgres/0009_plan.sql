-- The plan that an organization has of its own: the name of one in the settings.
-- NULL: the default plan.
ALTER TABLE organizations ADD COLUMN plan text CHECK (plan <> '');
