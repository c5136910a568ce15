-- Sums of total_entries by minute and by hour, so that a window's total costs the same however many entries lie in it: whole
-- hours, then the minutes before the first of them, then the entries before the first of those.

-- Scopes that grow with the business. An order's and a customer's entries are few and are added up as they are.
CREATE FUNCTION total_is_bucketed(scope text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT scope = 'shop' OR scope LIKE 'filer:%'
$$;

CREATE TABLE total_buckets (
  scope text NOT NULL,
  kind text NOT NULL,
  width text NOT NULL,
  -- begin, in UTC
  starts_at timestamptz NOT NULL,
  currency text NOT NULL,
  -- a sum is spread over a few rows, so that a scope which no rule locks is no hot row either
  shard smallint NOT NULL,
  count integer NOT NULL,
  amount_minor bigint NOT NULL,
  PRIMARY KEY (scope, kind, width, starts_at, currency, shard),
  CONSTRAINT total_buckets_width_is_known CHECK (width IN ('minute', 'hour'))
) WITH (fillfactor = 70);

-- Nothing here may make a release fail: what does not add up is the verifier's to name, not a reason to keep money reserved.
CREATE FUNCTION total_entries_add_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO total_buckets AS b (scope, kind, width, starts_at, currency, shard, count, amount_minor)
  SELECT e.scope, e.kind, w.width, date_trunc(w.width, e.at, 'UTC'), e.currency, abs(hashtext(e.operation_id) % 4),
         count(*) * TG_ARGV[0]::int, sum(e.amount_minor) * TG_ARGV[0]::int
  FROM changed e CROSS JOIN (VALUES ('minute'), ('hour')) AS w(width)
  WHERE total_is_bucketed(e.scope)
  GROUP BY 1, 2, 3, 4, 5, 6
  ORDER BY 1, 2, 3, 4, 5, 6
  ON CONFLICT (scope, kind, width, starts_at, currency, shard) DO UPDATE
    SET count = b.count + excluded.count, amount_minor = b.amount_minor + excluded.amount_minor;
  RETURN NULL;
END $$;
CREATE TRIGGER total_entries_come AFTER INSERT ON total_entries REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION total_entries_add_up('1');
CREATE TRIGGER total_entries_leave AFTER DELETE ON total_entries REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION total_entries_add_up('-1');
-- An entry comes and leaves; it never changes.
CREATE TRIGGER total_entries_never_change BEFORE UPDATE ON total_entries
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER total_entries_no_truncate BEFORE TRUNCATE ON total_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

INSERT INTO total_buckets (scope, kind, width, starts_at, currency, shard, count, amount_minor)
SELECT e.scope, e.kind, w.width, date_trunc(w.width, e.at, 'UTC'), e.currency, abs(hashtext(e.operation_id) % 4),
       count(*), sum(e.amount_minor)
FROM total_entries e CROSS JOIN (VALUES ('minute'), ('hour')) AS w(width)
WHERE total_is_bucketed(e.scope)
GROUP BY 1, 2, 3, 4, 5, 6;
