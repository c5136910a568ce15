/** Faults that wait for the next calls or deliveries they fit. First added, first used; one fault a call. */
import type { ActiveFault, ApiFault, DeliveryFault } from "./control-types.js";
import type { Hub } from "./hub.js";

export class Faults {
  #active: ActiveFault[] = [];
  #count = 0;
  readonly #hub: Hub;

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  addApi(fault: ApiFault): string {
    return this.#add("api", fault);
  }

  addDelivery(fault: DeliveryFault): string {
    return this.#add("delivery", fault);
  }

  #add(target: "api" | "delivery", fault: ApiFault | DeliveryFault): string {
    this.#count += 1;
    const id = `fault-${this.#count}`;
    this.#active.push({ id, target, left: fault.times, skip: fault.skip ?? 0, fault });
    this.#hub.emit({ type: "faults" });
    return id;
  }

  /** The fault for this Web API call, used up by one. */
  takeApi(method: string, channel: string | undefined): (ApiFault & { id: string }) | null {
    return this.#take(
      "api",
      (fault): fault is ApiFault =>
        "method" in fault &&
        (fault.method === "*" || fault.method === method) &&
        (fault.channel === undefined || fault.channel === channel),
    );
  }

  /** The fault for this delivery, used up by one. */
  takeDelivery(type: string): (DeliveryFault & { id: string }) | null {
    return this.#take(
      "delivery",
      (fault): fault is DeliveryFault =>
        !("method" in fault) && (fault.type === undefined || fault.type === type),
    );
  }

  #take<F extends ApiFault | DeliveryFault>(
    target: "api" | "delivery",
    fits: (fault: ApiFault | DeliveryFault) => fault is F,
  ): (F & { id: string }) | null {
    for (const entry of this.#active) {
      if (entry.target !== target || !fits(entry.fault)) continue;
      if (entry.skip > 0) {
        entry.skip -= 1;
        this.#hub.emit({ type: "faults" });
        continue;
      }
      entry.left -= 1;
      if (entry.left <= 0) this.#active = this.#active.filter((other) => other !== entry);
      this.#hub.emit({ type: "faults" });
      return { ...entry.fault, id: entry.id };
    }
    return null;
  }

  list(): ActiveFault[] {
    return this.#active.map((entry) => ({ ...entry }));
  }

  clear(id?: string): void {
    this.#active = id === undefined ? [] : this.#active.filter((entry) => entry.id !== id);
    this.#hub.emit({ type: "faults" });
  }
}
