/** Tickets that `seed` files and `run TICKET` drives, without Slack. Filers are people of the demo workspace. */
export interface DemoTicket {
  readonly ref: string;
  /** Slack user id. */
  readonly filer: string;
  readonly text: string;
}

export const DEMO_TICKETS: readonly DemoTicket[] = [
  {
    ref: "TCK-2001",
    filer: "U_AGENT",
    text: "Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.",
  },
  {
    ref: "TCK-2002",
    filer: "U_AGENT",
    text: "ORD-1001 came broken, $20.00 back please.",
  },
  {
    ref: "TCK-2003",
    filer: "U_AGENT2",
    text: "alice@shop.example has changed her mind. Please cancel order A-4471.",
  },
  {
    ref: "TCK-2004",
    filer: "U_AGENT2",
    text: "Please cancel order A-4472, alice@shop.example does not want the tent any more.",
  },
  {
    ref: "TCK-2005",
    filer: "U_AGENT",
    text: "alice@shop.example asks where her parcel is. Order A-4472.",
  },
  {
    ref: "TCK-2006",
    filer: "U_AGENT",
    text: "Grace Adeyemi wants all of ORD-1002 back, the stove set never worked.",
  },
  {
    ref: "TCK-2007",
    filer: "U_AGENT2",
    text: "The trail map of ORDER-100 is the wrong one. Please refund it in full.",
  },
  {
    ref: "TCK-2008",
    filer: "U_AGENT",
    text: "bob@shop.example says he was charged twice for B-9002. Please check.",
  },
  {
    ref: "TCK-2009",
    filer: "U_AGENT2",
    text: "Kenji Sato, ORD-JP1: the fan is broken. Please refund everything.",
  },
  {
    ref: "TCK-2010",
    filer: "U_AGENT",
    text: "Please cancel subscription SUB-1 at the end of the period, tom.w@shop.example is moving abroad.",
  },
  {
    ref: "TCK-2011",
    filer: "U_AGENT",
    text: "Formal complaint from dana@shop.example about ORD-2001. She wants a person to call her.",
  },
  {
    ref: "TCK-2012",
    filer: "U_AGENT2",
    text: "pat@shop.example would like a refund for the gloves.",
  },
  {
    ref: "TCK-2013",
    filer: "U_AGENT2",
    text: "Tom Whitfield: the laces of ORD-10050 are too short. Please refund the laces only (ORD-10050-2).",
  },
  {
    ref: "TCK-2014",
    filer: "U_AGENT",
    text: "How long can a customer return something after delivery?",
  },
];
