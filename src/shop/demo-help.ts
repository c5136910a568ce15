/** Help-centre articles of the demo shop. */
import type { ShopFileInput } from "./shop-file.js";

export const DEMO_HELP_ARTICLES: NonNullable<ShopFileInput["helpArticles"]> = [
  {
    slug: "returns-window",
    title: "How long can I return something?",
    body: "You can return an item within 30 days of delivery. The days are counted from the day the parcel was delivered, in UTC. After that we can no longer refund it, but a faulty item may still be covered by its maker's guarantee.",
  },
  {
    slug: "refund-time",
    title: "When will my refund arrive?",
    body: "A refund goes back to the card or account you paid with. Your bank usually shows it within 5 to 10 working days. We tell you as soon as the payment provider has confirmed it.",
  },
  {
    slug: "damaged-items",
    title: "My item arrived damaged or broken",
    body: "We are sorry. Tell us the order number and what is damaged, with a photo if you can. You do not have to send a broken item back before we refund it. We can refund the item, part of its price, or the whole order.",
  },
  {
    slug: "where-is-my-parcel",
    title: "Where is my parcel?",
    body: "Every dispatched order has a tracking number. Most parcels arrive 2 to 4 working days after dispatch. If the tracking has not moved for 5 working days, we open a search with the carrier.",
  },
  {
    slug: "cancel-an-order",
    title: "Cancelling an order",
    body: "An order can be cancelled until it is dispatched. Once it has left our warehouse, wait for it to arrive and return it. Cancelling an order that you have paid for does not return the money by itself: the refund is a separate step.",
  },
  {
    slug: "cancel-a-subscription",
    title: "Cancelling a subscription",
    body: "A subscription can end at once or at the end of the period that is paid for. If it ends at the end of the period you keep it until then and are not charged again.",
  },
  {
    slug: "duplicate-charge",
    title: "I was charged twice",
    body: "Sometimes a bank shows a pending authorisation beside the real payment; it disappears after a few days. If we really took the money twice for one order, we refund the second payment in full.",
  },
  {
    slug: "complaints",
    title: "Making a formal complaint",
    body: "A formal complaint is read by a person. Tell us that it is one, and we pass it on at once. You get an answer within five working days.",
  },
  {
    slug: "change-address",
    title: "Changing the delivery address",
    body: "We can change the address until the order is packed. After that the carrier can often redirect the parcel; use the tracking number on their page.",
  },
  {
    slug: "partial-refunds",
    title: "Refunding part of an order",
    body: "We can refund single items or an exact amount. What has been refunded already is taken off what is left; we can never refund more than you paid.",
  },
  {
    slug: "warranty",
    title: "Guarantee and repairs",
    body: "Jackets, boots and tents have a guarantee of two years. Within it we repair or replace a seam, a zip or a pole that fails in ordinary use.",
  },
];
