/**
 * The sandbox's tables, in a schema of their own in a database of their own: what was
 * committed here is counted here, whatever the product believes.
 *
 * Amounts are integers in minor units; `*_at_ms` are milliseconds of the sandbox's clock.
 */

export const SCHEMA = "payments_sandbox";

export const DDL = `
CREATE SCHEMA IF NOT EXISTS ${SCHEMA};

CREATE TABLE IF NOT EXISTS ${SCHEMA}.charges (
  id             text PRIMARY KEY,
  payment_intent text NOT NULL UNIQUE,
  customer       text,
  amount         bigint NOT NULL CHECK (amount > 0),
  currency       text NOT NULL CHECK (currency ~ '^[a-z]{3}$'),
  pi_status      text NOT NULL,
  disputed       boolean NOT NULL DEFAULT false,
  created_at_ms  bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS ${SCHEMA}.refunds (
  ordinal        bigint PRIMARY KEY,
  id             text NOT NULL UNIQUE,
  charge         text NOT NULL REFERENCES ${SCHEMA}.charges (id),
  payment_intent text NOT NULL,
  amount         bigint NOT NULL CHECK (amount > 0),
  currency       text NOT NULL,
  status         text NOT NULL CHECK (status IN ('pending','requires_action','succeeded','failed','canceled')),
  pending_reason text,
  failure_reason text,
  reason         text,
  metadata       jsonb NOT NULL,
  origin         text NOT NULL CHECK (origin IN ('api','dashboard')),
  idempotency_key text,
  created_at_ms  bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS refunds_by_payment_intent
  ON ${SCHEMA}.refunds (payment_intent, ordinal DESC);
CREATE INDEX IF NOT EXISTS refunds_by_operation
  ON ${SCHEMA}.refunds ((metadata ->> 'operation_id'));

CREATE TABLE IF NOT EXISTS ${SCHEMA}.subscriptions (
  id                   text PRIMARY KEY,
  customer             text NOT NULL,
  status               text NOT NULL,
  currency             text NOT NULL,
  unit_amount          bigint NOT NULL,
  cancel_at_period_end boolean NOT NULL DEFAULT false,
  current_period_start_ms bigint NOT NULL,
  current_period_end_ms   bigint NOT NULL,
  canceled_at_ms       bigint,
  ended_at_ms          bigint,
  metadata             jsonb NOT NULL DEFAULT '{}',
  cancellations        integer NOT NULL DEFAULT 0,
  created_at_ms        bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS ${SCHEMA}.idempotency_keys (
  key           text PRIMARY KEY,
  method        text NOT NULL,
  path          text NOT NULL,
  params        jsonb NOT NULL,
  params_canonical text NOT NULL,
  status        integer NOT NULL,
  body          text NOT NULL,
  request_id    text NOT NULL,
  created_at_ms bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS ${SCHEMA}.requests (
  ordinal         bigint PRIMARY KEY,
  id              text NOT NULL,
  method          text NOT NULL,
  path            text NOT NULL,
  params          jsonb NOT NULL,
  idempotency_key text,
  payment_intent  text,
  at_ms           bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS ${SCHEMA}.events (
  ordinal       bigint PRIMARY KEY,
  id            text NOT NULL UNIQUE,
  type          text NOT NULL,
  object_id     text NOT NULL,
  body          text NOT NULL,
  created_at_ms bigint NOT NULL,
  attempts      integer NOT NULL DEFAULT 0,
  delivered     boolean NOT NULL DEFAULT false
);
CREATE INDEX IF NOT EXISTS events_undelivered ON ${SCHEMA}.events (ordinal) WHERE NOT delivered;
`;
