/**
 * SQL: ids of the operations that run $1 owns or asked for. Two look-ups by index; one condition over both would read every operation.
 * Ask for them as `= ANY (ARRAY(...))`, which looks these up first: behind `IN` every operation may be read and looked for in here.
 */
export const OPERATIONS_OF_RUN = `SELECT id FROM operations WHERE owner_run_id = $1
       UNION SELECT operation_id FROM tool_calls WHERE run_id = $1 AND operation_id IS NOT NULL`;
