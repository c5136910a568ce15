/** What an import finds. */
/** An order and its payment as they were when the import had locked them. */
export interface OrderBefore {
  readonly status: string;
  readonly placedAt: Date;
  readonly deliveredAt: Date | null;
  readonly cancelledAt: Date | null;
  readonly payment: PaymentBefore | null;
}
export interface PaymentBefore {
  readonly id: string;
  readonly paymentIntent: string;
  readonly currency: string;
  readonly captured: bigint;
  readonly reserved: bigint;
  readonly refunded: bigint;
  readonly refundedElsewhere: bigint;
}
