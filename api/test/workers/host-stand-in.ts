// A host of the tests: a real HTTP server with the semantics of protocol/src/host.ts (epochs, idempotent verbs, overtaking destroys) and
// no machines behind it. It counts what it made, and does what a test scripts: be slow, refuse, be away, lose a machine.
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import {
  HOST_ERRORS,
  vmCreate,
  vmDestroyQuery,
  type HostErrorBody,
  type HostErrorCode,
  type VmSpec,
  type VmView,
} from '@berth/protocol/host.ts';

interface StandInVm extends VmView {
  spec: VmSpec;
  done: Promise<void>;
  overtaken: AbortController;
}

export interface HostCall {
  verb: 'PUT' | 'DELETE';
  id: string;
  epoch: number;
}

class Refusal extends Error {
  readonly body: HostErrorBody;

  constructor(code: HostErrorCode, message: string, shortage?: HostErrorBody['error']['shortage']) {
    super(message);
    this.body = { error: { code, message, ...(shortage === undefined ? {} : { shortage }) } };
  }
}

export class HostStandIn {
  readonly hostId = 'host-of-tests';
  readonly token = 'token-of-tests';
  readonly url: string;
  /** How long a restore takes, in milliseconds. */
  createMs = 0;
  /** Refuses the next creates, one each. */
  readonly refuseCreates: { code: HostErrorCode; message: string; shortage?: HostErrorBody['error']['shortage'] }[] = [];
  /** Every create and destroy that arrived, in order. */
  readonly calls: HostCall[] = [];
  /** Machines brought up per VM, over its life: more than one is a machine made twice. */
  readonly made = new Map<string, number>();
  readonly #vms = new Map<string, StandInVm>();
  readonly #fences = new Map<string, number>();
  readonly #socketPath: string;
  #server: http.Server | undefined;
  #startId = 0;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
    this.url = `unix:${socketPath}`;
  }

  /** Starts to listen; after `stop`, as a daemon that was started again with its VMs adopted. */
  async start(): Promise<void> {
    this.#startId += 1;
    const server = http.createServer((request, response) => {
      void this.#answer(request, response);
    });
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#socketPath, resolve);
    });
  }

  /** Goes away with all connections; VMs stay. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  /** VMs with a process, of any sandbox or of one. */
  alive(id?: string): string[] {
    return [...this.#vms.values()].filter((vm) => vm.status !== 'dead' && (id === undefined || vm.id === id)).map((vm) => vm.id);
  }

  /** The VM's process ends by itself. */
  killVm(id: string, reason: string): void {
    const vm = this.#vms.get(id);
    if (vm !== undefined) Object.assign(vm, { status: 'dead', reason });
  }

  /** The host forgets the VM, as when its disk was wiped. */
  forgetVm(id: string): void {
    this.#vms.delete(id);
  }

  /** A VM appears that no sandbox asked for. */
  addVm(id: string, epoch: number, spec: VmSpec): void {
    this.#vms.set(id, { id, epoch, status: 'running', spec, done: Promise.resolve(), overtaken: new AbortController() });
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    try {
      send(200, await this.#handle(request));
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal('internal', String(error));
      send(HOST_ERRORS[refusal.body.error.code], refusal.body);
    }
  }

  async #handle(request: http.IncomingMessage): Promise<unknown> {
    if (request.headers.authorization !== `Bearer ${this.token}`) throw new Refusal('unauthorized', 'wrong token');
    const url = new URL(request.url ?? '/', 'http://host');
    const id = /^\/vms\/([^/]+)$/.exec(url.pathname)?.[1];
    if (request.method === 'GET' && url.pathname === '/host') return this.#info();
    if (request.method === 'GET' && url.pathname === '/vms') return { vms: [...this.#vms.values()].map(viewOf) };
    if (request.method === 'PUT' && id !== undefined) return await this.#create(id, vmCreate.parse(JSON.parse(await textOf(request))));
    if (request.method === 'DELETE' && id !== undefined) {
      return await this.#destroy(id, vmDestroyQuery.parse(Object.fromEntries(url.searchParams)).epoch);
    }
    throw new Refusal('route_not_found', `${request.method} ${url.pathname}`);
  }

  #info(): unknown {
    return {
      hostId: this.hostId,
      startId: String(this.#startId),
      driver: 'fake',
      accelerator: 'none',
      qemuVersion: null,
      templateId: null,
      capacity: { vcpu: 10_000, memoryMib: 10_000_000, diskGib: 1_000_000 },
      reserved: { vcpu: 0, memoryMib: 0, diskGib: 0 },
    };
  }

  async #create(id: string, { epoch, spec }: { epoch: number; spec: VmSpec }): Promise<unknown> {
    this.calls.push({ verb: 'PUT', id, epoch });
    const refused = this.refuseCreates.shift();
    if (refused !== undefined) throw new Refusal(refused.code, refused.message, refused.shortage);
    const fence = this.#fences.get(id) ?? 0;
    if (epoch <= fence) throw new Refusal('stale_epoch', `epoch ${fence} was seen`);
    const before = this.#vms.get(id);
    if (before !== undefined && epoch < before.epoch) throw new Refusal('stale_epoch', `epoch ${before.epoch} was seen`);
    if (before !== undefined && epoch === before.epoch) return await this.#join(before);
    const vm: StandInVm = { id, epoch, status: 'creating', spec, done: Promise.resolve(), overtaken: new AbortController() };
    this.#vms.set(id, vm);
    vm.done = this.#restore(vm);
    return await this.#join(vm);
  }

  async #restore(vm: StandInVm): Promise<void> {
    this.made.set(vm.id, (this.made.get(vm.id) ?? 0) + 1);
    if (this.createMs > 0) await delay(this.createMs, undefined, { signal: vm.overtaken.signal }).catch(() => undefined);
    if (!vm.overtaken.signal.aborted) vm.status = 'running';
  }

  async #join(vm: StandInVm): Promise<unknown> {
    await vm.done;
    if (vm.overtaken.signal.aborted) throw new Refusal('superseded', 'a destroy overtook the create');
    if (vm.status === 'dead') throw new Refusal('create_failed', vm.reason ?? 'its process is gone');
    return viewOf(vm);
  }

  async #destroy(id: string, epoch: number): Promise<unknown> {
    this.calls.push({ verb: 'DELETE', id, epoch });
    const vm = this.#vms.get(id);
    const seen = Math.max(this.#fences.get(id) ?? 0, vm?.epoch ?? 0);
    if (epoch < seen) throw new Refusal('stale_epoch', `epoch ${seen} was seen`);
    this.#fences.set(id, epoch);
    if (vm !== undefined) {
      vm.overtaken.abort();
      await vm.done;
      this.#vms.delete(id);
    }
    return { id, epoch, status: 'destroyed' };
  }
}

function viewOf({ id, epoch, status, reason, spec }: StandInVm): VmView {
  return { id, epoch, status, spec, ...(status === 'dead' && reason !== undefined ? { reason } : {}) };
}

async function textOf(request: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
