-- The provider shows money in another currency on this payment: it cannot be counted in the payment's, so nothing is left to refund
-- until a person has looked at it.
ALTER TABLE payments ADD COLUMN other_currency text;

-- What is left to refund, in one place.
CREATE FUNCTION payment_left(p payments) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p.other_currency IS NULL THEN p.captured - p.reserved - p.refunded - p.refunded_elsewhere
    ELSE LEAST(p.captured - p.reserved - p.refunded - p.refunded_elsewhere, 0) END
$$;

-- Payments are read whole in turn, the longest unread first: the sweep's window does not reach back to everything.
ALTER TABLE payments ADD COLUMN compared_at timestamptz NOT NULL DEFAULT countersign_now();
CREATE INDEX payments_compared ON payments (compared_at, id);

ALTER TABLE incidents DROP CONSTRAINT incidents_kind_is_known;
ALTER TABLE incidents ADD CONSTRAINT incidents_kind_is_known CHECK (kind IN ('orphan_effect','missing_effect',
  'duplicate_effect','contradiction','reversed','refunded_elsewhere','overdrawn','import_below_reserved','late_effect',
  'freeze_tripped','row_changed','made_differently','other_currency'));

-- The sweep asks what was told of an operation or of a payment.
CREATE INDEX incidents_operation ON incidents (operation_id) WHERE operation_id IS NOT NULL;
CREATE INDEX incidents_payment ON incidents (payment_id) WHERE payment_id IS NOT NULL;
