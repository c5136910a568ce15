-- Not STRICT any more: a function that is gets its own parse and plan in every statement that calls it, where the same expression
-- without it becomes part of the statement. A scope is never null.
CREATE OR REPLACE FUNCTION total_is_bucketed(scope text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT scope = 'shop' OR scope LIKE 'filer:%'
$$;
