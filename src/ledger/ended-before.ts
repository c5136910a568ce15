/** Operations that had ended and are open again, because a person or evidence said so. */

/**
 * SQL: operation `id` had ended, and no person has authorised sending it again since. Of the end somebody was told, who may have paid
 * otherwise by now.
 */
export const endedBefore = (id: string): string => `EXISTS (
  SELECT 1 FROM operation_events q
  WHERE q.operation_id = ${id} AND q.type = 'quarantine' AND q.from_status IN ('CONFIRMED', 'REJECTED')
    AND NOT EXISTS (
      SELECT 1 FROM operation_events a WHERE a.operation_id = ${id} AND a.seq > q.seq AND a.type = 'authorise'))`;
