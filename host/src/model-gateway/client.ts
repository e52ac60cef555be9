// The host daemon's side of the model gateway: states which VMs it serves and with which access.
// After an exit of the gateway, the next one gets all of it again. Parses no HTTP.
import type { Socket } from 'node:net';
import { SerialQueue } from '@berth/os/serial-queue.ts';
import type { ModelAccess } from '@berth/protocol/calls/model-access.ts';
import type { Logger } from 'pino';
import { FRAME, FrameFault, FrameReader, writeJson } from '../gateway/frames.ts';
import { GatewayProcess, MODEL_GATEWAY, openGateway } from '../gateway/launch.ts';
import type { GuestEndpoint } from '../vm/driver.ts';
import { HostError } from '../vm/host-error.ts';
import type { ModelGate } from '../vm/owned/owned-vm.ts';
import { CA_BYTES, orderResult, RESULT_BYTES, type ModelOrder } from './order.ts';

/** Deadline of an order, a start of the gateway included. */
const ORDER_MS = 8_000;

interface ModelGatewayOptions {
  /** A private folder of the host daemon, for the socket. */
  folder: string;
  uid: number;
  /** May listen below port 1024. */
  lowPorts: boolean;
  /** PEM certificates of further authorities; null: those of Node alone. */
  ca: string | null;
  log: Logger;
}

/** Order to the gateway for a VM. */
interface Wanted {
  listen: GuestEndpoint;
  access: ModelAccess | null;
}

export class ModelGateway implements ModelGate {
  readonly #process: GatewayProcess;
  readonly #ca: string | null;
  readonly #log: Logger;
  readonly #wanted = new Map<string, Wanted>();
  readonly #orders = new SerialQueue();
  #control: Control | null = null;
  #started: Promise<void> | null = null;

  constructor({ folder, uid, lowPorts, ca, log }: ModelGatewayOptions) {
    if (ca !== null && Buffer.byteLength(ca) > CA_BYTES)
      throw new Error(`BERTH_MODEL_CA_FILE: the file is longer than ${CA_BYTES} bytes`);
    this.#ca = ca;
    this.#log = log;
    const program = { ...MODEL_GATEWAY, lowPorts };
    this.#process = new GatewayProcess({ folder, uid, log, program, serving: (socket) => this.#serving(socket) });
  }

  /** Process id on the host; null if none runs. For tests. */
  get pid(): number | null {
    return this.#process.pid;
  }

  /** Listens for a VM; requests wait until the access is set. Starts the gateway if none runs. */
  async serve(vmId: string, listen: GuestEndpoint): Promise<void> {
    this.#wanted.set(vmId, { listen, access: null });
    await this.#state(vmId);
  }

  /** Resolves when the access is in force. Does nothing for a VM that is not served. */
  async setAccess(vmId: string, access: ModelAccess): Promise<void> {
    const wanted = this.#wanted.get(vmId);
    if (wanted === undefined) return;
    this.#wanted.set(vmId, { ...wanted, access });
    await this.#state(vmId);
  }

  /** Ends a VM's requests and forgets its access. Never rejects. */
  async forget(vmId: string): Promise<void> {
    if (!this.#wanted.delete(vmId)) return;
    await this.#state(vmId).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#wanted.clear();
    await this.#started?.catch(() => undefined);
    await this.#process.close();
  }

  /** States the newest of a VM, after all earlier orders. */
  async #state(vmId: string): Promise<void> {
    const deadline = AbortSignal.timeout(ORDER_MS);
    this.#started ??= this.#process.begin().catch((error: unknown) => {
      this.#started = null;
      throw error;
    });
    try {
      await this.#started;
      await this.#orders.run(() => this.#send(vmId, deadline));
    } catch (error) {
      this.#log.warn({ vmId, err: error }, 'the model gateway does not serve a VM');
      if (error instanceof HostError) throw error;
      throw new HostError('agent_models_unavailable', 'the model gateway does not respond', { cause: error });
    }
  }

  async #send(vmId: string, deadline: AbortSignal): Promise<void> {
    for (;;) {
      const socket = await this.#process.ready(deadline);
      try {
        return await this.#control?.order(this.#orderFor(vmId), deadline);
      } catch (error) {
        if (error instanceof HostError) throw error;
        // Exited or stuck. The next gateway is given the VM as it starts.
        this.#process.refused(socket);
        deadline.throwIfAborted();
      }
    }
  }

  #orderFor(vm: string): ModelOrder {
    const wanted = this.#wanted.get(vm);
    return wanted === undefined ? { do: 'close', vm } : { do: 'serve', vm, ...wanted };
  }

  /** Called when a gateway has started, before any order. */
  async #serving(socket: string): Promise<void> {
    const control = await Control.open(socket);
    const deadline = AbortSignal.timeout(ORDER_MS);
    await control.order({ do: 'settings', ca: this.#ca }, deadline);
    for (const vmId of this.#wanted.keys()) {
      await control.order(this.#orderFor(vmId), deadline).catch((error: unknown) => {
        if (!(error instanceof HostError)) throw error;
        this.#log.warn({ vmId, err: error }, 'the model gateway cannot serve a VM');
      });
    }
    this.#control = control;
  }
}

/** The connection to one gateway process. Orders are sent one after the other. */
class Control {
  readonly #connection: Socket;
  readonly #reader: FrameReader;

  private constructor(connection: Socket) {
    this.#connection = connection;
    this.#reader = new FrameReader(connection);
  }

  static async open(path: string): Promise<Control> {
    return new Control(await openGateway(path));
  }

  /** Rejects with a {@link HostError} if the gateway refuses it; otherwise the gateway is lost. */
  async order(order: ModelOrder, signal: AbortSignal): Promise<void> {
    const onAbort = (): void => void this.#connection.destroy();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      writeJson(this.#connection, FRAME.order, order);
      const frame = await this.#reader.frame(RESULT_BYTES);
      if (frame?.kind !== FRAME.result) throw new FrameFault('the model gateway closed the connection');
      const { failure } = orderResult.parse(JSON.parse(frame.payload.toString('utf8')));
      if (failure !== null) throw new HostError('agent_models_unavailable', `the model gateway: ${failure}`);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}
