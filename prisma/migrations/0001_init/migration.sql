-- Countersign, first schema. Money is bigint minor units; times are timestamptz; ids are prefixed UUIDv7 text.
-- Constraints are named for the rule they keep.

CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;

-- ── time ────────────────────────────────────────────────────────────────────────────────────────────────────────
-- The one `now` of the product. The offset is zero in production (checked at start) and moved only in demo and tests.
CREATE TABLE clock_offset (
  singleton boolean PRIMARY KEY DEFAULT true,
  offset_ms bigint NOT NULL DEFAULT 0,
  CONSTRAINT clock_offset_is_one_row CHECK (singleton)
);
INSERT INTO clock_offset DEFAULT VALUES;

-- STABLE, so that it can bound an index scan; reads the wall clock, because a lease must not be judged by the start of a
-- transaction that waited for a lock.
CREATE FUNCTION countersign_now() RETURNS timestamptz LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE shift bigint;
BEGIN
  SELECT offset_ms INTO shift FROM clock_offset;
  IF shift IS NULL OR shift = 0 THEN RETURN clock_timestamp(); END IF;
  RETURN clock_timestamp() + make_interval(secs => shift / 1000.0);
END $$;

-- ── shop ────────────────────────────────────────────────────────────────────────────────────────────────────────
CREATE TABLE customers (
  id text PRIMARY KEY,
  ref text NOT NULL CONSTRAINT customers_ref_is_unique UNIQUE,
  name text NOT NULL,
  email text NOT NULL,
  email_normal text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  updated_at timestamptz NOT NULL DEFAULT countersign_now()
);
CREATE INDEX customers_email_normal ON customers (email_normal);
-- Names are looked for without their case and accents. Declared immutable: the dictionary is named and does not change.
CREATE FUNCTION plain_name(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT lower(public.unaccent('public.unaccent'::regdictionary, name))
$$;
CREATE INDEX customers_name_trgm ON customers USING gin (plain_name(name) gin_trgm_ops);
CREATE INDEX customers_email_trgm ON customers USING gin (email_normal gin_trgm_ops);

CREATE TABLE orders (
  id text PRIMARY KEY,
  ref text NOT NULL CONSTRAINT orders_ref_is_unique UNIQUE,
  customer_id text NOT NULL REFERENCES customers (id),
  status text NOT NULL,
  currency text NOT NULL,
  placed_at timestamptz NOT NULL,
  delivered_at timestamptz,
  cancelled_at timestamptz,
  shipping_minor bigint NOT NULL DEFAULT 0,
  version bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  updated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT orders_status_is_known CHECK (status IN ('placed','packed','dispatched','delivered','cancelled','returned')),
  CONSTRAINT orders_shipping_is_not_negative CHECK (shipping_minor >= 0)
);
CREATE INDEX orders_customer ON orders (customer_id, placed_at DESC, id DESC);

CREATE TABLE order_items (
  id text PRIMARY KEY,
  order_id text NOT NULL REFERENCES orders (id),
  ref text NOT NULL,
  sku text NOT NULL,
  name text NOT NULL,
  quantity integer NOT NULL,
  unit_minor bigint NOT NULL,
  position integer NOT NULL DEFAULT 0,
  CONSTRAINT order_items_ref_is_unique_in_order UNIQUE (order_id, ref),
  CONSTRAINT order_items_quantity_is_positive CHECK (quantity > 0),
  CONSTRAINT order_items_unit_is_not_negative CHECK (unit_minor >= 0)
);

-- Refundable balance is an invariant of this row (DESIGN §4). What the provider reports to have happened is recorded even
-- where it breaks the plan, so only the parts that we plan are bounded here; every reservation is conditional on the sum.
CREATE TABLE payments (
  id text PRIMARY KEY,
  order_id text NOT NULL CONSTRAINT payments_one_per_order UNIQUE REFERENCES orders (id),
  payment_intent text NOT NULL CONSTRAINT payments_intent_is_unique UNIQUE,
  currency text NOT NULL,
  captured bigint NOT NULL,
  reserved bigint NOT NULL DEFAULT 0,
  refunded bigint NOT NULL DEFAULT 0,
  refunded_elsewhere bigint NOT NULL DEFAULT 0,
  version bigint NOT NULL DEFAULT 1,
  updated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT payments_balance_is_not_negative CHECK (reserved >= 0 AND refunded >= 0),
  CONSTRAINT payments_captured_is_not_negative CHECK (captured >= 0),
  CONSTRAINT payments_elsewhere_is_not_negative CHECK (refunded_elsewhere >= 0)
);

CREATE TABLE shipments (
  id text PRIMARY KEY,
  order_id text NOT NULL REFERENCES orders (id),
  carrier text NOT NULL,
  tracking text NOT NULL,
  status text NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT shipments_tracking_is_unique_in_order UNIQUE (order_id, tracking)
);

CREATE TABLE subscriptions (
  id text PRIMARY KEY,
  ref text NOT NULL CONSTRAINT subscriptions_ref_is_unique UNIQUE,
  customer_id text NOT NULL REFERENCES customers (id),
  plan text NOT NULL,
  status text NOT NULL,
  provider_ref text NOT NULL CONSTRAINT subscriptions_provider_ref_is_unique UNIQUE,
  current_period_end timestamptz,
  cancel_at_period_end boolean NOT NULL DEFAULT false,
  version bigint NOT NULL DEFAULT 1,
  updated_at timestamptz NOT NULL DEFAULT countersign_now()
);
CREATE INDEX subscriptions_customer ON subscriptions (customer_id);

CREATE TABLE help_articles (
  id text PRIMARY KEY,
  slug text NOT NULL CONSTRAINT help_articles_slug_is_unique UNIQUE,
  title text NOT NULL,
  body text NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT countersign_now()
);
CREATE INDEX help_articles_words ON help_articles USING gin (to_tsvector('english', title || ' ' || body));
CREATE INDEX help_articles_title_trgm ON help_articles USING gin (title gin_trgm_ops);

-- ── policy ──────────────────────────────────────────────────────────────────────────────────────────────────────
CREATE TABLE policy_versions (
  hash text PRIMARY KEY,
  text_hash text NOT NULL,
  body text NOT NULL,
  parsed jsonb NOT NULL,
  loaded_at timestamptz NOT NULL DEFAULT countersign_now()
);
CREATE TABLE active_policy (
  singleton boolean PRIMARY KEY DEFAULT true,
  hash text NOT NULL REFERENCES policy_versions (hash),
  activated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT active_policy_is_one_row CHECK (singleton)
);

-- ── tickets and runs ────────────────────────────────────────────────────────────────────────────────────────────
CREATE TABLE tickets (
  id text PRIMARY KEY,
  ref text CONSTRAINT tickets_ref_is_unique UNIQUE,
  source text NOT NULL,
  team_id text,
  channel_id text,
  message_ts text,
  thread_ts text,
  filer text NOT NULL,
  -- Everybody who counts as filer: who wrote the message and who ran a shortcut on it.
  filers text[] NOT NULL,
  text text NOT NULL,
  text_hash text NOT NULL,
  files jsonb NOT NULL DEFAULT '[]',
  customer_id text REFERENCES customers (id),
  binding text NOT NULL DEFAULT 'none',
  binding_candidates jsonb NOT NULL DEFAULT '[]',
  bound_by text,
  -- where it came from (a message, a form's submission): the same origin is the same ticket
  dedupe_key text NOT NULL CONSTRAINT tickets_once UNIQUE,
  version bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  updated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT tickets_source_is_known CHECK (source IN ('message','form','shortcut','seed','cli')),
  CONSTRAINT tickets_binding_is_known CHECK (binding IN ('none','unconfirmed','confirmed')),
  CONSTRAINT tickets_bound_has_customer CHECK (binding = 'none' OR customer_id IS NOT NULL),
  CONSTRAINT tickets_one_per_message UNIQUE (channel_id, message_ts)
);
CREATE INDEX tickets_filer ON tickets (filer, created_at DESC, id DESC);

CREATE TABLE runs (
  id text PRIMARY KEY,
  ticket_id text NOT NULL REFERENCES tickets (id),
  state text NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  planner text NOT NULL,
  model text,
  end_code text,
  end_detail text,
  planner_success boolean,
  verified_success boolean,
  constraints_kept boolean NOT NULL DEFAULT true,
  cancel_requested_by text,
  -- budgets: reserved before the call that uses them, then corrected to what was used
  steps_used integer NOT NULL DEFAULT 0,
  steps_max integer NOT NULL,
  output_tokens_used bigint NOT NULL DEFAULT 0,
  input_tokens_used bigint NOT NULL DEFAULT 0,
  cost_used_micro_usd bigint NOT NULL DEFAULT 0,
  cost_max_micro_usd bigint,
  -- what the model call under way may cost, and the day it is booked on; a crash turns it into spent
  reserved_micro_usd bigint NOT NULL DEFAULT 0,
  reserved_day date,
  active_ms bigint NOT NULL DEFAULT 0,
  active_since timestamptz,
  deadline_ms bigint NOT NULL,
  model_failures integer NOT NULL DEFAULT 0,
  due_at timestamptz,
  -- something this run waits for happened while it was leased: look again before giving it back
  woken boolean NOT NULL DEFAULT false,
  lease_token bigint NOT NULL DEFAULT 0,
  lease_until timestamptz,
  lease_holder text,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  updated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT runs_reservation_has_day CHECK (reserved_micro_usd = 0 OR reserved_day IS NOT NULL),
  CONSTRAINT runs_state_is_known CHECK (state IN ('queued','running','awaiting_binding','awaiting_approval','waiting',
    'resolved','escalated','budget_exhausted','failed','cancelled'))
);
CREATE UNIQUE INDEX runs_one_active_per_ticket ON runs (ticket_id)
  WHERE state IN ('queued','running','awaiting_binding','awaiting_approval','waiting');
CREATE INDEX runs_due ON runs (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX runs_list ON runs (created_at DESC, id DESC);
CREATE INDEX runs_ticket ON runs (ticket_id);

CREATE TABLE turns (
  id text PRIMARY KEY,
  run_id text NOT NULL REFERENCES runs (id),
  seq integer NOT NULL,
  state text NOT NULL,
  -- verbatim content blocks of the reply, thinking and signatures included
  content jsonb NOT NULL,
  stop_reason text,
  stop_details jsonb,
  model text,
  usage jsonb NOT NULL DEFAULT '{}',
  cost_micro_usd bigint NOT NULL DEFAULT 0,
  request_hash text,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  updated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT turns_state_is_known CHECK (state IN ('recorded','held','released','resolved','final')),
  CONSTRAINT turns_seq_is_unique_in_run UNIQUE (run_id, seq)
);

CREATE TABLE tool_calls (
  id text PRIMARY KEY,
  run_id text NOT NULL REFERENCES runs (id),
  turn_id text NOT NULL REFERENCES turns (id),
  position integer NOT NULL,
  tool_use_id text NOT NULL,
  name text NOT NULL,
  input jsonb NOT NULL,
  state text NOT NULL,
  operation_id text,
  replayed boolean NOT NULL DEFAULT false,
  -- allowed, held, refused, invalid: what code answered before anything ran
  decision text,
  decision_detail jsonb,
  result text,
  result_json jsonb,
  is_error boolean,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  finished_at timestamptz,
  CONSTRAINT tool_calls_state_is_known CHECK (state IN ('proposed','held','ready','waiting','done')),
  CONSTRAINT tool_calls_use_is_unique_in_turn UNIQUE (turn_id, tool_use_id),
  CONSTRAINT tool_calls_position_is_unique_in_turn UNIQUE (turn_id, position),
  CONSTRAINT tool_calls_done_has_result CHECK (state <> 'done' OR (result IS NOT NULL AND is_error IS NOT NULL))
);
CREATE INDEX tool_calls_operation ON tool_calls (operation_id) WHERE operation_id IS NOT NULL;
CREATE INDEX tool_calls_run ON tool_calls (run_id, created_at);

-- What the filer adds in the thread while a run is under way: information, never approval.
CREATE TABLE run_notes (
  id text PRIMARY KEY,
  run_id text NOT NULL REFERENCES runs (id),
  author text NOT NULL,
  text text NOT NULL,
  dedupe_key text NOT NULL CONSTRAINT run_notes_once UNIQUE,
  used_in_seq integer,
  created_at timestamptz NOT NULL DEFAULT countersign_now()
);
CREATE INDEX run_notes_run ON run_notes (run_id, created_at);

CREATE TABLE spend_days (
  day date PRIMARY KEY,
  reserved_micro_usd bigint NOT NULL DEFAULT 0,
  spent_micro_usd bigint NOT NULL DEFAULT 0,
  CONSTRAINT spend_days_not_negative CHECK (reserved_micro_usd >= 0 AND spent_micro_usd >= 0)
);

-- ── ledger ──────────────────────────────────────────────────────────────────────────────────────────────────────
CREATE TABLE operation_transitions (
  from_status text NOT NULL,
  event text NOT NULL,
  to_status text NOT NULL,
  PRIMARY KEY (from_status, event)
);
INSERT INTO operation_transitions (from_status, event, to_status) VALUES
  ('AWAITING_APPROVAL','release','PREPARED'), ('AWAITING_APPROVAL','deny','DENIED'),
  ('AWAITING_APPROVAL','expire','EXPIRED'), ('AWAITING_APPROVAL','void','VOIDED'),
  ('PREPARED','claim','DISPATCHED'), ('PREPARED','deny','DENIED'), ('PREPARED','void','VOIDED'),
  ('DISPATCHED','settle_confirmed','CONFIRMED'), ('DISPATCHED','settle_rejected','REJECTED'),
  ('DISPATCHED','settle_unknown','OUTCOME_UNKNOWN'), ('DISPATCHED','not_executed','PREPARED'),
  ('OUTCOME_UNKNOWN','reconcile','RECONCILING'),
  ('RECONCILING','settle_confirmed','CONFIRMED'), ('RECONCILING','settle_rejected','REJECTED'),
  ('RECONCILING','settle_unknown','OUTCOME_UNKNOWN'), ('RECONCILING','quarantine','QUARANTINED'),
  ('RECONCILING','resend','DISPATCHED'), ('RECONCILING','not_executed','PREPARED'),
  ('QUARANTINED','settle_confirmed','CONFIRMED'), ('QUARANTINED','settle_rejected','REJECTED'),
  ('QUARANTINED','resend','DISPATCHED'), ('QUARANTINED','reconcile','RECONCILING'),
  ('CONFIRMED','reverse','REVERSED'), ('CONFIRMED','quarantine','QUARANTINED'),
  ('REJECTED','quarantine','QUARANTINED');

CREATE TABLE operations (
  id text PRIMARY KEY,
  key text NOT NULL,
  -- true while the operation may have, or had, an effect (or a person closed it): one such row a key
  key_live boolean NOT NULL DEFAULT true,
  occurrence integer NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  customer_id text NOT NULL REFERENCES customers (id),
  customer_ref text NOT NULL,
  order_id text REFERENCES orders (id),
  order_ref text,
  payment_id text REFERENCES payments (id),
  payment_intent text,
  subscription_id text REFERENCES subscriptions (id),
  subscription_ref text,
  provider_subscription text,
  amount_minor bigint NOT NULL,
  currency text NOT NULL,
  at_period_end boolean,
  refund_scope text,
  item_refs text[] NOT NULL DEFAULT '{}',
  reason text NOT NULL DEFAULT '',
  fingerprint text NOT NULL,
  contract_version text NOT NULL,
  idempotency_key text NOT NULL CONSTRAINT operations_idempotency_key_is_unique UNIQUE,
  policy_hash text NOT NULL REFERENCES policy_versions (hash),
  decision jsonb NOT NULL,
  approval_id text,
  approved_by text[] NOT NULL DEFAULT '{}',
  predecessor_id text REFERENCES operations (id),
  owner_run_id text REFERENCES runs (id),
  ticket_id text REFERENCES tickets (id),
  filers text[] NOT NULL DEFAULT '{}',
  request jsonb,
  provider_ref text,
  provider_status text,
  result jsonb,
  quarantine_reason text,
  resolved_by_person boolean NOT NULL DEFAULT false,
  -- how much of the reservation this operation still holds; zero once confirmed or released
  reserved_minor bigint NOT NULL DEFAULT 0,
  -- totals under which it is counted once it is prepared
  scopes text[] NOT NULL DEFAULT '{}',
  attempts integer NOT NULL DEFAULT 0,
  probes integer NOT NULL DEFAULT 0,
  not_before timestamptz,
  first_claimed_at timestamptz,
  last_send_ended_at timestamptz,
  unknown_since timestamptz,
  due_at timestamptz,
  lease_token bigint NOT NULL DEFAULT 0,
  lease_until timestamptz,
  lease_holder text,
  event_count integer NOT NULL DEFAULT 0,
  head_hash text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  updated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT operations_kind_is_known CHECK (kind IN ('refund','cancel_order','cancel_subscription')),
  CONSTRAINT operations_status_is_known CHECK (status IN ('AWAITING_APPROVAL','PREPARED','DISPATCHED','OUTCOME_UNKNOWN',
    'RECONCILING','QUARANTINED','CONFIRMED','REJECTED','DENIED','EXPIRED','VOIDED','REVERSED')),
  CONSTRAINT operations_amount_is_not_negative CHECK (amount_minor >= 0),
  CONSTRAINT operations_refund_has_amount CHECK (kind <> 'refund' OR amount_minor > 0),
  CONSTRAINT operations_reserved_fits CHECK (reserved_minor >= 0 AND reserved_minor <= amount_minor),
  CONSTRAINT operations_occurrence_is_positive CHECK (occurrence >= 1),
  CONSTRAINT operations_confirmed_has_reference CHECK (status <> 'CONFIRMED' OR provider_ref IS NOT NULL)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX operations_key_is_unique_among_live ON operations (key) WHERE key_live;
CREATE INDEX operations_due ON operations (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX operations_list ON operations (created_at DESC, id DESC);
CREATE INDEX operations_key ON operations (key);
CREATE INDEX operations_order ON operations (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX operations_subscription ON operations (subscription_id) WHERE subscription_id IS NOT NULL;
CREATE INDEX operations_ticket ON operations (ticket_id) WHERE ticket_id IS NOT NULL;
CREATE INDEX operations_run ON operations (owner_run_id) WHERE owner_run_id IS NOT NULL;
CREATE INDEX operations_provider_ref ON operations (provider_ref) WHERE provider_ref IS NOT NULL;

-- A status moves only along the table, and never without a new version.
CREATE FUNCTION operations_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.status IS DISTINCT FROM OLD.status THEN
    IF NOT EXISTS (SELECT 1 FROM operation_transitions t WHERE t.from_status = OLD.status AND t.to_status = NEW.status) THEN
      RAISE EXCEPTION 'operation %: % to % is no transition', OLD.id, OLD.status, NEW.status
        USING ERRCODE = '23514', CONSTRAINT = 'operations_transition_is_legal';
    END IF;
    IF NEW.version <= OLD.version THEN
      RAISE EXCEPTION 'operation %: a transition needs a new version', OLD.id
        USING ERRCODE = '23514', CONSTRAINT = 'operations_version_grows';
    END IF;
  END IF;
  IF NEW.lease_token < OLD.lease_token THEN
    RAISE EXCEPTION 'operation %: the lease token never goes back', OLD.id
      USING ERRCODE = '23514', CONSTRAINT = 'operations_lease_token_grows';
  END IF;
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.fingerprint IS DISTINCT FROM OLD.fingerprint
     OR NEW.amount_minor IS DISTINCT FROM OLD.amount_minor OR NEW.currency IS DISTINCT FROM OLD.currency
     OR NEW.idempotency_key IS DISTINCT FROM OLD.idempotency_key OR NEW.order_id IS DISTINCT FROM OLD.order_id
     OR NEW.customer_id IS DISTINCT FROM OLD.customer_id OR NEW.kind IS DISTINCT FROM OLD.kind THEN
    RAISE EXCEPTION 'operation %: material fields never change', OLD.id
      USING ERRCODE = '23514', CONSTRAINT = 'operations_material_fields_are_fixed';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER operations_guard BEFORE UPDATE ON operations FOR EACH ROW EXECUTE FUNCTION operations_guard();

CREATE TABLE operation_waiters (
  operation_id text NOT NULL REFERENCES operations (id),
  run_id text NOT NULL REFERENCES runs (id),
  ticket_id text NOT NULL REFERENCES tickets (id),
  filer text NOT NULL,
  joined_at timestamptz NOT NULL DEFAULT countersign_now(),
  told_status text,
  PRIMARY KEY (operation_id, run_id)
);
CREATE INDEX operation_waiters_run ON operation_waiters (run_id);

CREATE TABLE attempts (
  id text PRIMARY KEY,
  operation_id text NOT NULL REFERENCES operations (id),
  number integer NOT NULL,
  lease_token bigint NOT NULL,
  worker text NOT NULL,
  started_at timestamptz NOT NULL,
  timeout_ms integer NOT NULL,
  finished_at timestamptz,
  -- open: may have committed; the others as in domain/evidence.ts
  verdict text NOT NULL DEFAULT 'open',
  code text,
  http_status integer,
  provider_ref text,
  request_id text,
  evidence jsonb,
  CONSTRAINT attempts_number_is_unique_in_operation UNIQUE (operation_id, number),
  CONSTRAINT attempts_verdict_is_known CHECK (verdict IN ('open','committed','postcondition_failed','pending','not_executed',
    'rejected','failed_at_provider','unknown'))
);

CREATE TABLE operation_events (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  operation_id text NOT NULL REFERENCES operations (id),
  seq integer NOT NULL,
  at timestamptz NOT NULL,
  type text NOT NULL,
  from_status text,
  to_status text,
  actor text NOT NULL,
  attempt integer,
  -- canonical JSON of everything the event says; the columns beside it repeat parts of it for reading
  body text NOT NULL,
  prev_hash text NOT NULL,
  hash text NOT NULL,
  CONSTRAINT operation_events_seq_is_unique_in_operation UNIQUE (operation_id, seq),
  CONSTRAINT operation_events_have_one_successor UNIQUE (operation_id, prev_hash)
);

-- How often outcomes become unknown: the freeze switch trips on it. Holds those events only.
CREATE INDEX operation_events_unknown ON operation_events (at)
  WHERE to_status = 'OUTCOME_UNKNOWN' AND from_status = 'DISPATCHED';

CREATE TABLE audit_blocks (
  seq bigint PRIMARY KEY,
  first_event bigint NOT NULL,
  last_event bigint NOT NULL,
  event_count integer NOT NULL,
  content_hash text NOT NULL,
  prev_hash text NOT NULL CONSTRAINT audit_blocks_have_one_successor UNIQUE,
  hash text NOT NULL,
  sealed_at timestamptz NOT NULL DEFAULT countersign_now()
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = '42501';
END $$;
CREATE TRIGGER operation_events_append_only BEFORE UPDATE OR DELETE ON operation_events
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER operation_events_no_truncate BEFORE TRUNCATE ON operation_events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_blocks_append_only BEFORE UPDATE OR DELETE ON audit_blocks
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_blocks_no_truncate BEFORE TRUNCATE ON audit_blocks
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Personal data of the audit log: events name `salt:` hashes; erasing a row here erases the person and keeps the chain.
CREATE TABLE audit_subjects (
  hash text PRIMARY KEY,
  salt text NOT NULL,
  value text NOT NULL CONSTRAINT audit_subjects_value_is_unique UNIQUE,
  created_at timestamptz NOT NULL DEFAULT countersign_now()
);

-- Rolling totals. One row a scope is the lock; entries are what counts, and what may have been spent counts as spent.
CREATE TABLE total_scopes (
  name text PRIMARY KEY
);
CREATE TABLE total_entries (
  -- no foreign key: a scope that no rule counts has no lock row
  scope text NOT NULL,
  operation_id text NOT NULL REFERENCES operations (id),
  kind text NOT NULL,
  currency text NOT NULL,
  amount_minor bigint NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (scope, operation_id)
);
CREATE INDEX total_entries_window ON total_entries (scope, kind, at) INCLUDE (currency, amount_minor);

CREATE TABLE provider_evidence (
  id text PRIMARY KEY,
  -- one row for each distinct fact: object, status, amount
  dedupe_key text NOT NULL CONSTRAINT provider_evidence_once UNIQUE,
  operation_id text REFERENCES operations (id),
  source text NOT NULL,
  provider_ref text,
  payload jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT provider_evidence_source_is_known CHECK (source IN ('response','late_response','probe','webhook','sweep','person'))
);
CREATE INDEX provider_evidence_operation ON provider_evidence (operation_id) WHERE operation_id IS NOT NULL;
CREATE INDEX provider_evidence_reference ON provider_evidence (provider_ref) WHERE provider_ref IS NOT NULL;

CREATE TABLE provider_webhooks (
  event_id text PRIMARY KEY,
  type text NOT NULL,
  object_id text,
  payload jsonb NOT NULL,
  received_at timestamptz NOT NULL DEFAULT countersign_now(),
  processed_at timestamptz,
  failures integer NOT NULL DEFAULT 0,
  due_at timestamptz DEFAULT countersign_now()
);
CREATE INDEX provider_webhooks_due ON provider_webhooks (due_at, event_id) WHERE due_at IS NOT NULL;

CREATE TABLE incidents (
  id text PRIMARY KEY,
  kind text NOT NULL,
  dedupe_key text NOT NULL CONSTRAINT incidents_once UNIQUE,
  operation_id text REFERENCES operations (id),
  payment_id text REFERENCES payments (id),
  detail jsonb NOT NULL,
  status text NOT NULL DEFAULT 'open',
  closed_by text,
  closed_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT incidents_kind_is_known CHECK (kind IN ('orphan_effect','missing_effect','duplicate_effect','contradiction',
    'reversed','refunded_elsewhere','overdrawn','import_below_reserved','late_effect','freeze_tripped')),
  CONSTRAINT incidents_status_is_known CHECK (status IN ('open','closed'))
);
CREATE INDEX incidents_open ON incidents (created_at, id) WHERE status = 'open';

-- Claims and resends lock their row FOR SHARE; freezing updates it and so waits for them.
CREATE TABLE freeze_switches (
  kind text PRIMARY KEY,
  frozen boolean NOT NULL DEFAULT false,
  by text,
  reason text,
  at timestamptz,
  thaw_asked_by text,
  version bigint NOT NULL DEFAULT 1,
  CONSTRAINT freeze_switches_kind_is_known CHECK (kind IN ('all','refund','cancel_order','cancel_subscription'))
);
INSERT INTO freeze_switches (kind) VALUES ('all'), ('refund'), ('cancel_order'), ('cancel_subscription');

-- An on-call person's decision on an operation, and the second person's where two are needed.
CREATE TABLE resolutions (
  id text PRIMARY KEY,
  operation_id text NOT NULL REFERENCES operations (id),
  verb text NOT NULL,
  state text NOT NULL,
  operation_version bigint NOT NULL,
  by text NOT NULL,
  reason text NOT NULL,
  evidence_ref text NOT NULL,
  probe jsonb NOT NULL DEFAULT '{}',
  second_by text,
  second_verdict text,
  second_note text,
  expires_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  updated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT resolutions_verb_is_known CHECK (verb IN ('confirm','reject','retry')),
  CONSTRAINT resolutions_state_is_known CHECK (state IN ('proposed','applied','disagreed','refused','superseded','expired')),
  CONSTRAINT resolutions_second_is_another CHECK (second_by IS NULL OR second_by <> by)
);
CREATE UNIQUE INDEX resolutions_one_open_per_operation ON resolutions (operation_id) WHERE state = 'proposed';
CREATE INDEX resolutions_operation ON resolutions (operation_id);

-- ── approvals ───────────────────────────────────────────────────────────────────────────────────────────────────
CREATE TABLE approvals (
  id text PRIMARY KEY,
  operation_id text NOT NULL REFERENCES operations (id),
  run_id text REFERENCES runs (id),
  turn_id text REFERENCES turns (id),
  ticket_id text REFERENCES tickets (id),
  state text NOT NULL,
  version bigint NOT NULL DEFAULT 1,
  -- what was shown and is executed: customer, order, operation, amount, currency, fingerprint, order snapshot, policy answer
  binding jsonb NOT NULL,
  binding_hash text NOT NULL,
  policy_hash text NOT NULL REFERENCES policy_versions (hash),
  answer_hash text NOT NULL,
  role text NOT NULL,
  approvers_needed integer NOT NULL,
  confirm_amount boolean NOT NULL DEFAULT false,
  card_version integer NOT NULL DEFAULT 1,
  predecessor_id text REFERENCES approvals (id),
  -- what changed since the predecessor's card
  changes jsonb NOT NULL DEFAULT '[]',
  -- whether enough people could decide this, and if not what to do; null: not looked at yet
  gate jsonb,
  -- operations prepared together with this one: their own reservations are no drift
  released_with text[] NOT NULL DEFAULT '{}',
  expires_at timestamptz NOT NULL,
  reminders_sent integer NOT NULL DEFAULT 0,
  due_at timestamptz,
  decided_at timestamptz,
  end_code text,
  end_detail text,
  deny_note text,
  suggested_minor bigint,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  updated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT approvals_state_is_known CHECK (state IN ('PENDING','APPROVED','RELEASED','DENIED','EXPIRED','VOIDED')),
  CONSTRAINT approvals_needed_is_positive CHECK (approvers_needed >= 1)
);

-- A state moves only along the table and never without a new version; what was shown never changes.
CREATE TABLE approval_transitions (
  from_state text NOT NULL,
  to_state text NOT NULL,
  PRIMARY KEY (from_state, to_state)
);
INSERT INTO approval_transitions (from_state, to_state) VALUES
  ('PENDING','APPROVED'), ('PENDING','DENIED'), ('PENDING','EXPIRED'), ('PENDING','VOIDED'),
  ('APPROVED','RELEASED'), ('APPROVED','DENIED'), ('APPROVED','VOIDED'),
  ('RELEASED','DENIED'), ('RELEASED','VOIDED');
CREATE FUNCTION approvals_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state IS DISTINCT FROM OLD.state THEN
    IF NOT EXISTS (SELECT 1 FROM approval_transitions t WHERE t.from_state = OLD.state AND t.to_state = NEW.state) THEN
      RAISE EXCEPTION 'approval %: % to % is no transition', OLD.id, OLD.state, NEW.state
        USING ERRCODE = '23514', CONSTRAINT = 'approvals_transition_is_legal';
    END IF;
    IF NEW.version <= OLD.version THEN
      RAISE EXCEPTION 'approval %: a transition needs a new version', OLD.id
        USING ERRCODE = '23514', CONSTRAINT = 'approvals_version_grows';
    END IF;
  END IF;
  IF NEW.operation_id IS DISTINCT FROM OLD.operation_id OR NEW.binding IS DISTINCT FROM OLD.binding
     OR NEW.binding_hash IS DISTINCT FROM OLD.binding_hash OR NEW.role IS DISTINCT FROM OLD.role
     OR NEW.approvers_needed IS DISTINCT FROM OLD.approvers_needed THEN
    RAISE EXCEPTION 'approval %: what was shown never changes', OLD.id
      USING ERRCODE = '23514', CONSTRAINT = 'approvals_binding_is_fixed';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER approvals_guard BEFORE UPDATE ON approvals FOR EACH ROW EXECUTE FUNCTION approvals_guard();
CREATE UNIQUE INDEX approvals_one_open_per_operation ON approvals (operation_id) WHERE state IN ('PENDING','APPROVED');
CREATE INDEX approvals_due ON approvals (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX approvals_turn ON approvals (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX approvals_pending ON approvals (expires_at, id) WHERE state = 'PENDING';
CREATE INDEX approvals_operation ON approvals (operation_id);
CREATE INDEX approvals_run ON approvals (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX approvals_predecessor ON approvals (predecessor_id) WHERE predecessor_id IS NOT NULL;

CREATE TABLE votes (
  id text PRIMARY KEY,
  approval_id text NOT NULL REFERENCES approvals (id),
  -- one person whatever their ids
  person text NOT NULL,
  user_id text NOT NULL,
  verdict text NOT NULL,
  note text,
  role text NOT NULL,
  role_evidence jsonb NOT NULL DEFAULT '{}',
  card_version integer NOT NULL,
  -- where the card was that was clicked
  seen jsonb,
  at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT votes_verdict_is_known CHECK (verdict IN ('approve','deny')),
  CONSTRAINT votes_one_per_person UNIQUE (approval_id, person)
);

-- ── Slack ───────────────────────────────────────────────────────────────────────────────────────────────────────
CREATE TABLE slack_inbox (
  id text PRIMARY KEY,
  dedupe_key text NOT NULL CONSTRAINT slack_inbox_once UNIQUE,
  kind text NOT NULL,
  body jsonb NOT NULL,
  retry_num integer,
  received_at timestamptz NOT NULL DEFAULT countersign_now(),
  processed_at timestamptz,
  failures integer NOT NULL DEFAULT 0,
  last_error text,
  due_at timestamptz DEFAULT countersign_now(),
  lease_token bigint NOT NULL DEFAULT 0,
  lease_until timestamptz
);
CREATE INDEX slack_inbox_due ON slack_inbox (due_at, id) WHERE due_at IS NOT NULL;

-- A card is one message in one channel that shows one subject; its text is rendered from the subject's row.
CREATE TABLE slack_cards (
  id text PRIMARY KEY,
  kind text NOT NULL,
  subject_id text NOT NULL,
  slot text NOT NULL,
  channel_id text NOT NULL,
  thread_ts text,
  message_ts text,
  -- version wanted by the subject, and the one Slack has shown
  wanted_version bigint NOT NULL DEFAULT 1,
  shown_version bigint NOT NULL DEFAULT 0,
  shown_hash text,
  state text NOT NULL DEFAULT 'live',
  -- a post began then whose answer we do not have: look for it by metadata before posting again
  attempt_at timestamptz,
  -- the turn in the channel's pace is taken: due_at is it
  paced boolean NOT NULL DEFAULT false,
  -- Slack refused the full card: the plain one is shown
  plain boolean NOT NULL DEFAULT false,
  shown_at timestamptz,
  due_at timestamptz,
  failures integer NOT NULL DEFAULT 0,
  last_error text,
  lease_token bigint NOT NULL DEFAULT 0,
  lease_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  updated_at timestamptz NOT NULL DEFAULT countersign_now(),
  CONSTRAINT slack_cards_one_per_slot UNIQUE (kind, subject_id, slot),
  CONSTRAINT slack_cards_state_is_known CHECK (state IN ('live','replaced','lost'))
);
CREATE INDEX slack_cards_due ON slack_cards (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX slack_cards_message ON slack_cards (channel_id, message_ts) WHERE message_ts IS NOT NULL;

-- One-off posts, thread replies and ephemerals, in the order they were written.
CREATE TABLE slack_outbox (
  id text PRIMARY KEY,
  dedupe_key text NOT NULL CONSTRAINT slack_outbox_once UNIQUE,
  method text NOT NULL,
  channel_id text,
  thread_ts text,
  user_id text,
  payload jsonb NOT NULL,
  lane text NOT NULL DEFAULT 'normal',
  state text NOT NULL DEFAULT 'waiting',
  message_ts text,
  -- posts of one ticket leave in the order in which they were written
  ticket_id text,
  -- a call began then whose answer we do not have: look for it by metadata before posting again
  attempt_at timestamptz,
  paced boolean NOT NULL DEFAULT false,
  failures integer NOT NULL DEFAULT 0,
  last_error text,
  due_at timestamptz DEFAULT countersign_now(),
  lease_token bigint NOT NULL DEFAULT 0,
  lease_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT countersign_now(),
  sent_at timestamptz,
  CONSTRAINT slack_outbox_state_is_known CHECK (state IN ('waiting','sent','dropped'))
);
CREATE INDEX slack_outbox_due ON slack_outbox (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX slack_outbox_order ON slack_outbox (ticket_id, id) WHERE state = 'waiting' AND ticket_id IS NOT NULL;

CREATE TABLE slack_people (
  id text PRIMARY KEY,
  profile jsonb NOT NULL,
  fetched_at timestamptz NOT NULL
);
CREATE TABLE slack_groups (
  id text PRIMARY KEY,
  members text[] NOT NULL,
  fetched_at timestamptz NOT NULL
);
-- When the next call of a kind may leave: posts by channel, edits by lane. Shared by all processes.
CREATE TABLE slack_pace (
  key text PRIMARY KEY,
  next_at timestamptz NOT NULL,
  urgent_at timestamptz NOT NULL,
  -- Slack said Retry-After
  blocked_until timestamptz
);
