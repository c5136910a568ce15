/** A policy for orders in number: tickets on them do not meet in a total. */

/** The demo's authority, with nothing counted: every refund of more than £50.00 is held for a supervisor. */
export const NOTHING_COUNTED = `version: 1
kinds:
  refund:
    orderStatuses: [delivered, cancelled]
    windowDays: 30
    auto: { GBP: 5000, USD: 5000 }
    never: { GBP: 200000, USD: 200000 }
    approval:
      - { upTo: { GBP: 50000, USD: 50000 }, role: supervisor, approvers: 1 }
      - { upTo: { GBP: 200000, USD: 200000 }, role: finance, approvers: 2 }
  cancel_order: { orderStatuses: [placed, packed], auto: false, approval: [{ role: supervisor, approvers: 1 }] }
roles:
  filer: {}
  supervisor: { usergroups: [S_SUP], limit: { GBP: 50000, USD: 50000 } }
  finance: { users: [U_FIN1, U_FIN2] }
  oncall: { usergroups: [S_ONC] }
`;
