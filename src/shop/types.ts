/** The shop as the rest of the program reads it. Amounts are bigint minor units of the named currency. */
import type { OrderStatus } from "../domain/order.js";

export interface Customer {
  readonly id: string;
  readonly ref: string;
  readonly name: string;
  readonly email: string;
}

export interface OrderItem {
  readonly ref: string;
  readonly sku: string;
  readonly name: string;
  readonly quantity: number;
  /** Of one piece. */
  readonly unitMinor: bigint;
}

export interface Payment {
  readonly id: string;
  readonly paymentIntent: string;
  readonly currency: string;
  readonly captured: bigint;
  readonly reserved: bigint;
  readonly refunded: bigint;
  readonly refundedElsewhere: bigint;
  /** The provider shows a refund in this currency, which cannot be counted in the payment's; null: it does not. */
  readonly otherCurrency: string | null;
  /**
   * captured − reserved − refunded − refundedElsewhere; negative after a correction below what was spent, never above 0 while
   * the provider shows another currency.
   */
  readonly refundable: bigint;
}

export interface Shipment {
  readonly carrier: string;
  readonly tracking: string;
  readonly status: string;
  readonly updatedAt: Date;
}

export interface OrderHead {
  readonly id: string;
  readonly ref: string;
  readonly customerId: string;
  readonly status: OrderStatus;
  readonly currency: string;
  readonly placedAt: Date;
  readonly deliveredAt: Date | null;
  readonly cancelledAt: Date | null;
}

export interface Order extends OrderHead {
  readonly shippingMinor: bigint;
  readonly version: bigint;
  readonly customer: Customer;
  readonly items: readonly OrderItem[];
  readonly payment: Payment | null;
  readonly shipments: readonly Shipment[];
}

export interface Subscription {
  readonly id: string;
  readonly ref: string;
  readonly customer: Customer;
  readonly plan: string;
  readonly status: string;
  readonly providerRef: string;
  readonly currentPeriodEnd: Date | null;
  readonly cancelAtPeriodEnd: boolean;
  readonly version: bigint;
}
