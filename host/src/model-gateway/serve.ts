// Carries out the host daemon's orders: one gateway for each VM. Runs without privileges, in
// main.ts.
import type { Duplex } from 'node:stream';
import { rootCertificates } from 'node:tls';
import { RateLimit } from '@berth/os/rate-limit.ts';
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { FRAME, FrameReader, writeJson } from '../gateway/frames.ts';
import { boundedMessageOf } from '../vm/host-error.ts';
import { MODEL_LIMITS, type ModelLimits } from './limits.ts';
import { modelOrder, ORDER_BYTES, type ModelOrder } from './order.ts';
import { VmGateway, type SharedLimits } from './vm-gateway.ts';

/** Orgs whose rates are kept; the oldest is forgotten. */
const ORGS = 4_096;

interface ServedVm {
  address: string;
  port: number;
  gateway: VmGateway;
}

export class ModelGatewayServer {
  readonly #shared: SharedLimits;
  readonly #rates = new Map<string, RateLimit>();
  readonly #vms = new Map<string, ServedVm>();

  constructor(limits: ModelLimits = MODEL_LIMITS) {
    this.#shared = {
      limits,
      places: new SharedCapacity(limits.perHost),
      rateOf: (orgId) => this.#rateOf(orgId),
      ca: [...rootCertificates],
    };
  }

  /** Serves the connection of the host daemon: one order after the other. Never rejects. */
  async serve(connection: Duplex): Promise<void> {
    connection.on('error', () => undefined);
    const reader = new FrameReader(connection);
    try {
      for (;;) {
        const frame = await reader.frame(ORDER_BYTES);
        if (frame === null) return;
        const order = modelOrder.parse(JSON.parse(frame.payload.toString('utf8')));
        const failure = await this.#carryOut(order).then(() => null, boundedMessageOf);
        writeJson(connection, FRAME.result, { failure });
      }
    } catch {
      // The host daemon has gone; its connection says no more.
    } finally {
      connection.end();
    }
  }

  close(): void {
    for (const { gateway } of this.#vms.values()) gateway.close();
    this.#vms.clear();
  }

  async #carryOut(order: ModelOrder): Promise<void> {
    switch (order.do) {
      case 'settings':
        if (order.ca !== null) this.#shared.ca.push(order.ca);
        return;
      case 'close':
        this.#vms.get(order.vm)?.gateway.close();
        this.#vms.delete(order.vm);
        return;
      case 'serve': {
        const { gateway } = await this.#served(order);
        gateway.setAccess(order.access);
        return;
      }
      default:
    }
  }

  async #served({ vm, listen }: ModelOrder & { do: 'serve' }): Promise<ServedVm> {
    const known = this.#vms.get(vm);
    if (known !== undefined && known.address === listen.address && known.port === listen.port) return known;
    known?.gateway.close();
    this.#vms.delete(vm);
    const gateway = new VmGateway(this.#shared);
    await gateway.listen(listen);
    const served = { ...listen, gateway };
    this.#vms.set(vm, served);
    return served;
  }

  #rateOf(orgId: string): RateLimit {
    const { orgPerMinute, orgBurst } = this.#shared.limits;
    const rate = this.#rates.get(orgId) ?? new RateLimit(orgPerMinute / 60, orgBurst);
    this.#rates.delete(orgId);
    this.#rates.set(orgId, rate);
    const [oldest] = this.#rates.keys();
    if (this.#rates.size > ORGS && oldest !== undefined) this.#rates.delete(oldest);
    return rate;
  }
}
