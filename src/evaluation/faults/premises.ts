/** What every episode starts from: its payment, and the authority under which the agent acts. */

/** What a payment of an episode has captured, minor units. Twice any amount fits, so that a second refund would go through. */
export const CAPTURED_MINOR = 20_000;
export const CURRENCY = "GBP";

/** The authority of the matrix: up to £100.00 the agent acts alone, above it one supervisor; nothing is counted. */
export const MATRIX_POLICY = `
version: 1
kinds:
  refund:
    orderStatuses: [delivered]
    windowDays: 3000
    auto: { GBP: 10000 }
    never: { GBP: 200000 }
    approval: [{ role: supervisor, approvers: 1 }]
    totals: []
    coolingOffMinutes: {}
roles:
  supervisor: { users: [U_SUP1] }
  oncall: { users: [U_ONC1] }
`;
