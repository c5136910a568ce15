-- Where the money would go, and everything else that the fingerprint covers, is as fixed as the fingerprint itself.
CREATE OR REPLACE FUNCTION operations_guard() RETURNS trigger LANGUAGE plpgsql AS $$
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
     OR NEW.customer_id IS DISTINCT FROM OLD.customer_id OR NEW.kind IS DISTINCT FROM OLD.kind
     OR NEW.customer_ref IS DISTINCT FROM OLD.customer_ref OR NEW.order_ref IS DISTINCT FROM OLD.order_ref
     OR NEW.subscription_ref IS DISTINCT FROM OLD.subscription_ref
     OR NEW.payment_intent IS DISTINCT FROM OLD.payment_intent
     OR NEW.provider_subscription IS DISTINCT FROM OLD.provider_subscription
     OR NEW.at_period_end IS DISTINCT FROM OLD.at_period_end OR NEW.occurrence IS DISTINCT FROM OLD.occurrence
     OR NEW.contract_version IS DISTINCT FROM OLD.contract_version THEN
    RAISE EXCEPTION 'operation %: material fields never change', OLD.id
      USING ERRCODE = '23514', CONSTRAINT = 'operations_material_fields_are_fixed';
  END IF;
  RETURN NEW;
END $$;

-- A row that no longer says what was decided is not sent, and on-call hears of it.
ALTER TABLE incidents DROP CONSTRAINT incidents_kind_is_known;
ALTER TABLE incidents ADD CONSTRAINT incidents_kind_is_known CHECK (kind IN ('orphan_effect','missing_effect',
  'duplicate_effect','contradiction','reversed','refunded_elsewhere','overdrawn','import_below_reserved','late_effect',
  'freeze_tripped','row_changed'));
