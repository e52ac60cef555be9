// Test host: a real HTTP server with the semantics of protocol/src/host.ts (epochs, idempotent
// verbs, overtaking destroys) and no VMs. Counts its work and follows scripts: slow, refusing,
// losing responses, absent, losing a VM.
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { clone, type GuestCloneOutput, type GuestCloneResult, type VmClone } from '@berth/protocol/calls/clones.ts';
import { epochQuery, hostBodyOf } from '@berth/protocol/calls/define.ts';
import type { EgressPolicy } from '@berth/protocol/egress.ts';
import { createVm, resizeVm, setEgress, sleepVm, wakeVm } from '@berth/protocol/calls/vms.ts';
import { setModelAccess, type ModelAccess } from '@berth/protocol/calls/model-access.ts';
import type { VmMetrics } from '@berth/protocol/calls/metrics.ts';
import { HOST_ERRORS, type HostErrorCode, type VmSpec, type VmView } from '@berth/protocol/host.ts';
import { Refusal, type ScriptedRefusal } from './hosts/stand-in-refusal.ts';
import { viewOf } from './hosts/stand-in-view.ts';

interface StandInVm extends VmView {
  spec: VmSpec;
  /** Work in progress for the VM; settled when idle. */
  done: Promise<void>;
  /** A resize is in progress; the status stays `running`. */
  resizing: boolean;
  overtaken: AbortController;
}

type HostVerb = 'PUT' | 'sleep' | 'wake' | 'resize' | 'egress' | 'clone' | 'DELETE' | 'model-access';

interface HostCall {
  verb: HostVerb;
  id: string;
  epoch: number;
}

/** Refusals after the work began: the VM already has the new epoch. */
const AFTER_WORK: ReadonlySet<HostErrorCode> = new Set<HostErrorCode>(['sleep_failed', 'wake_failed', 'resize_failed']);

export class HostStandIn {
  readonly hostId: string;
  readonly token = 'token-of-tests';
  readonly url: string;
  /** Duration of each verb in milliseconds. */
  createMs = 0;
  sleepMs = 0;
  wakeMs = 0;
  resizeMs = 0;
  cloneMs = 0;
  capacity = { vcpu: 10_000, memoryMib: 10_000_000, diskGib: 1_000_000 };
  largest = { vcpu: 64, memoryMib: 1_000_000, diskGib: 100_000 };
  /** Refuses the next calls of a verb, one each. */
  readonly refuseCreates: ScriptedRefusal[] = [];
  readonly refuseSleeps: ScriptedRefusal[] = [];
  readonly refuseWakes: ScriptedRefusal[] = [];
  readonly refuseResizes: ScriptedRefusal[] = [];
  readonly refuseClones: ScriptedRefusal[] = [];
  /** Refuse every change of an egress policy, and every access to models, while they are set. */
  refuseEgress: ScriptedRefusal | null = null;
  refuseModelAccess: ScriptedRefusal | null = null;
  /** Results of the next clones, one each; later clones succeed. */
  readonly cloneResults: GuestCloneResult[] = [];
  /** Git's output in the next clones, one each; later there is no such call. */
  readonly cloneOutputs: GuestCloneOutput[] = [];
  /** All requested clones, and their number per VM carried out. */
  readonly clones: VmClone[] = [];
  readonly cloned = new Map<string, number>();
  /** Executes the next calls of these verbs, one each, and breaks the connection. */
  readonly loseAnswers: HostVerb[] = [];
  /** Access of VMs to models. */
  readonly modelAccess = new Map<string, ModelAccess>();
  /** Guest that keeps its resources: a wake with a smaller size leaves the VM as large. */
  guestHoldsOn = false;
  /** Received calls of verbs, in order. */
  readonly calls: HostCall[] = [];
  /** Number of polls of the host's identity. */
  looks = 0;
  /** VMs started per id, over its life: more than one is a duplicate. */
  readonly made = new Map<string, number>();
  /** Wakes carried out per VM. */
  readonly woken = new Map<string, number>();
  /** Received bodies with the VM's id. */
  readonly bodies: { id: string; dataKey?: string }[] = [];
  /** Response of `GET /vms/{id}/metrics`. */
  metrics: (id: string) => VmMetrics = idleMetrics;
  readonly #vms = new Map<string, StandInVm>();
  readonly #fences = new Map<string, number>();
  readonly #pauses = new Map<HostVerb, AbortController>();
  readonly #socketPath: string;
  #server: http.Server | undefined;
  #startId = 0;

  constructor(socketPath: string, hostId = 'host-of-tests') {
    this.#socketPath = socketPath;
    this.url = `unix:${socketPath}`;
    this.hostId = hostId;
  }

  /** Starts listening; after `stop`, like a restarted daemon that adopted its VMs. */
  async start(): Promise<void> {
    this.#startId += 1;
    for (const vm of this.#vms.values()) Object.assign(vm, this.#forgetAccess(vm));
    const server = http.createServer((request, response) => {
      void this.#answer(request, response);
    });
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#socketPath, resolve);
    });
  }

  /** Stops with all connections; VMs stay. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  /** Removes all delays, also of calls in progress, and all scripts. */
  calm(): void {
    for (const verb of this.#pauses.keys()) this.finish(verb);
    this.createMs = this.sleepMs = this.wakeMs = this.resizeMs = this.cloneMs = 0;
    this.guestHoldsOn = false;
    this.refuseEgress = this.refuseModelAccess = null;
    const scripts = [this.refuseCreates, this.refuseSleeps, this.refuseWakes, this.refuseResizes, this.refuseClones];
    const clones = [this.cloneResults, this.cloneOutputs, this.clones];
    for (const list of [...scripts, ...clones, this.loseAnswers, this.calls]) list.length = 0;
  }

  /**
   * Ends the delays of the verb's calls in progress, so that a test can give them a long delay and
   * check in between.
   */
  finish(verb: HostVerb): void {
    this.#pauses.get(verb)?.abort();
    this.#pauses.delete(verb);
  }

  /** Aborts when the verb's delay ends early. */
  #pauseOf(verb: HostVerb): AbortSignal {
    const pause = this.#pauses.get(verb) ?? new AbortController();
    this.#pauses.set(verb, pause);
    return pause.signal;
  }

  /** VMs with a process, of any sandbox or of one. */
  alive(id?: string): string[] {
    return [...this.#vms.values()]
      .filter((vm) => vm.status !== 'dead' && vm.status !== 'asleep' && (id === undefined || vm.id === id))
      .map((vm) => vm.id);
  }

  /** The VM as `GET /vms` shows it. */
  vm(id: string): VmView | undefined {
    const vm = this.#vms.get(id);
    return vm && viewOf(vm);
  }

  killVm(id: string, reason: string, more: Pick<VmView, 'deathCode' | 'keeps' | 'lastAliveUnixMs'> = {}): void {
    this.setVm(id, { status: 'dead', reason, deathCode: 'process_ended', keeps: 'disk', ...more });
  }

  /** Overwrites the VM's state. */
  setVm(id: string, changed: Partial<VmView>): void {
    const vm = this.#vms.get(id);
    if (vm !== undefined) Object.assign(vm, changed);
  }

  /** Drops the VM, as if its disk were wiped. */
  forgetVm(id: string): void {
    this.#vms.delete(id);
  }

  /** Adds a VM without a sandbox. */
  addVm(id: string, epoch: number, spec: VmSpec, changed: Partial<VmView> = {}): void {
    this.#vms.set(id, {
      id,
      epoch,
      status: 'running',
      spec,
      done: Promise.resolve(),
      resizing: false,
      overtaken: new AbortController(),
      ...changed,
    } as StandInVm);
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    try {
      const { verb, answer } = await this.#handle(request);
      const lost = verb === undefined ? -1 : this.loseAnswers.indexOf(verb);
      if (lost < 0) {
        send(200, answer);
        return;
      }
      this.loseAnswers.splice(lost, 1);
      request.socket.destroy();
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal('internal', String(error));
      send(HOST_ERRORS[refusal.body.error.code], refusal.body);
    }
  }

  async #handle(request: http.IncomingMessage): Promise<{ verb?: HostVerb; answer: unknown }> {
    if (request.headers.authorization !== `Bearer ${this.token}`) throw new Refusal('unauthorized', 'wrong token');
    const url = new URL(request.url ?? '/', 'http://host');
    const [, id, noun] = /^\/vms\/([^/]+)(?:\/([^/]+|clone\/output))?$/.exec(url.pathname) ?? [];
    const body = async (): Promise<unknown> => {
      const parsed = JSON.parse(await textOf(request));
      this.bodies.push({ ...parsed, id });
      return parsed;
    };
    if (request.method === 'GET' && url.pathname === '/host') {
      this.looks += 1;
      return { answer: this.#info() };
    }
    if (request.method === 'GET' && url.pathname === '/vms')
      return { answer: { vms: [...this.#vms.values()].map(viewOf) } };
    if (id === undefined) throw new Refusal('route_not_found', `${request.method} ${url.pathname}`);
    switch (`${request.method} ${noun ?? ''}`) {
      case 'PUT ':
        return { verb: 'PUT', answer: await this.#create(id, hostBodyOf(createVm).parse(await body())) };
      case 'DELETE ':
        return {
          verb: 'DELETE',
          answer: await this.#destroy(id, epochQuery.parse(Object.fromEntries(url.searchParams)).epoch),
        };
      case 'POST sleep':
        return { verb: 'sleep', answer: await this.#sleep(id, hostBodyOf(sleepVm).parse(await body()).epoch) };
      case 'POST wake':
        return { verb: 'wake', answer: await this.#wake(id, hostBodyOf(wakeVm).parse(await body())) };
      case 'POST resize':
        return { verb: 'resize', answer: await this.#resize(id, hostBodyOf(resizeVm).parse(await body())) };
      case 'POST egress':
        return { verb: 'egress', answer: this.#setEgress(id, hostBodyOf(setEgress).parse(await body())) };
      case 'PUT model-access':
        return { verb: 'model-access', answer: this.#setAccess(id, hostBodyOf(setModelAccess).parse(await body())) };
      case 'POST clone':
        return { verb: 'clone', answer: await this.#clone(id, hostBodyOf(clone).parse(await body())) };
      case 'GET clone/output':
        if (this.cloneOutputs.length === 0) break;
        return { answer: this.cloneOutputs.shift() };
      case 'GET metrics': {
        const vm = this.#vms.get(id);
        if (vm?.status !== 'running') throw new Refusal('vm_not_running', `the VM is ${vm?.status ?? 'not here'}`);
        return { answer: this.metrics(id) };
      }
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
      capacity: this.capacity,
      reserved: { vcpu: 0, memoryMib: 0, diskGib: 0 },
      largest: this.largest,
      pool: { ready: 0, target: 0 },
    };
  }

  async #create(id: string, { epoch, spec }: { epoch: number; spec: VmSpec }): Promise<unknown> {
    this.calls.push({ verb: 'PUT', id, epoch });
    this.#refuseIfScripted(this.refuseCreates, undefined, epoch);
    const fence = this.#fences.get(id) ?? 0;
    if (epoch <= fence) throw new Refusal('stale_epoch', `epoch ${fence} was seen`);
    const before = this.#vms.get(id);
    if (before !== undefined && epoch < before.epoch)
      throw new Refusal('stale_epoch', `epoch ${before.epoch} was seen`);
    if (before !== undefined && epoch === before.epoch) return await this.#join(before);
    this.addVm(id, epoch, spec, { status: 'creating' });
    const vm = this.#vms.get(id) as StandInVm;
    this.made.set(vm.id, (this.made.get(vm.id) ?? 0) + 1);
    vm.done = this.#work(vm, 'PUT', this.createMs, () => (vm.status = 'running'));
    return await this.#join(vm);
  }

  async #join(vm: StandInVm): Promise<unknown> {
    await vm.done;
    if (vm.status === 'dead') throw new Refusal('create_failed', vm.reason ?? 'its process is gone');
    return viewOf(vm);
  }

  async #sleep(id: string, epoch: number): Promise<unknown> {
    this.calls.push({ verb: 'sleep', id, epoch });
    const vm = await this.#turn(id, epoch, 'sleeping');
    if (vm === undefined || vm.status === 'dead')
      throw new Refusal('vm_not_running', `the VM is ${vm?.status ?? 'not here'}`);
    this.#refuseIfScripted(this.refuseSleeps, vm, epoch);
    vm.epoch = epoch;
    if (vm.status === 'running') {
      vm.status = 'sleeping';
      vm.done = this.#work(vm, 'sleep', this.sleepMs, () => Object.assign(vm, { status: 'asleep', keeps: 'snapshot' }));
      await vm.done;
    }
    return viewOf(vm);
  }

  async #wake(id: string, { epoch, spec }: { epoch: number; spec: VmSpec }): Promise<unknown> {
    this.calls.push({ verb: 'wake', id, epoch });
    const vm = await this.#turn(id, epoch, 'waking');
    this.#refuseIfScripted(this.refuseWakes, vm, epoch);
    if (vm === undefined || vm.keeps === 'nothing')
      throw new Refusal('nothing_to_wake', 'neither snapshot nor disk are here');
    vm.epoch = epoch;
    if (vm.status === 'running') return viewOf(vm);
    const woke =
      vm.keeps === 'snapshot'
        ? { from: 'snapshot', reason: null }
        : { from: 'disk', reason: vm.reason ?? 'it has no snapshot' };
    vm.status = 'waking';
    vm.done = this.#work(vm, 'wake', this.wakeMs, () => {
      this.woken.set(id, (this.woken.get(id) ?? 0) + 1);
      const held = { vcpu: Math.max(vm.spec.vcpu, spec.vcpu), memoryMib: Math.max(vm.spec.memoryMib, spec.memoryMib) };
      Object.assign(vm, {
        status: 'running',
        ...this.#forgetAccess(vm),
        spec: { ...spec, ...(this.guestHoldsOn ? held : {}) },
        woke,
        keeps: undefined,
        reason: undefined,
      });
    });
    await vm.done;
    return viewOf(vm);
  }

  async #resize(
    id: string,
    { epoch, size }: { epoch: number; size: Pick<VmSpec, 'vcpu' | 'memoryMib' | 'diskGib'> },
  ): Promise<unknown> {
    this.calls.push({ verb: 'resize', id, epoch });
    const vm = await this.#turn(id, epoch, 'resizing');
    if (vm?.status !== 'running') throw new Refusal('vm_not_running', `the VM is ${vm?.status ?? 'not here'}`);
    this.#refuseIfScripted(this.refuseResizes, vm, epoch);
    if (size.vcpu < vm.spec.vcpu || size.memoryMib < vm.spec.memoryMib || size.diskGib < vm.spec.diskGib)
      throw new Refusal('invalid_request', 'a VM that runs does not shrink');

    vm.epoch = epoch;
    vm.resizing = true;
    vm.done = this.#work(vm, 'resize', this.resizeMs, () => Object.assign(vm.spec, size)).finally(
      () => (vm.resizing = false),
    );
    await vm.done;
    return viewOf(vm);
  }

  #setEgress(id: string, { epoch, egress }: { epoch: number; egress: EgressPolicy }): unknown {
    this.calls.push({ verb: 'egress', id, epoch });
    const vm = this.#vms.get(id);
    if (vm === undefined) throw new Refusal('vm_not_running', 'the VM is not here');
    if (epoch < vm.epoch) throw new Refusal('stale_epoch', `epoch ${vm.epoch} was seen`);
    if (this.refuseEgress !== null) throw new Refusal(this.refuseEgress.code, this.refuseEgress.message);
    if (egress.revision >= (vm.spec.egress?.revision ?? 0)) vm.spec.egress = egress;
    return viewOf(vm);
  }

  /** The policy that the VM's host enforces. */
  egress(id: string): EgressPolicy | undefined {
    return this.#vms.get(id)?.spec.egress;
  }

  #setAccess(id: string, { epoch, ...access }: ModelAccess & { epoch: number }): unknown {
    this.calls.push({ verb: 'model-access', id, epoch });
    const vm = this.#vms.get(id);
    if (vm?.status !== 'running') throw new Refusal('vm_not_running', `the VM is ${vm?.status ?? 'not here'}`);
    if (epoch < vm.epoch) throw new Refusal('stale_epoch', `epoch ${vm.epoch} was seen`);
    if (this.refuseModelAccess !== null) throw new Refusal(this.refuseModelAccess.code, this.refuseModelAccess.message);
    if (access.asOfMs < (this.modelAccess.get(id)?.asOfMs ?? 0)) return {};
    this.modelAccess.set(id, access);
    vm.modelVersion = access.version;
    return {};
  }

  /** A daemon knows after a wake or its own start which VMs use the gateway, but no keys. */
  #forgetAccess({ id, modelVersion }: StandInVm): Partial<VmView> {
    this.modelAccess.delete(id);
    return modelVersion === undefined ? {} : { modelVersion: null };
  }

  async #clone(id: string, clone: VmClone): Promise<GuestCloneResult> {
    this.calls.push({ verb: 'clone', id, epoch: clone.epoch });
    this.clones.push(clone);
    const vm = this.#vms.get(id);
    if (vm !== undefined && clone.epoch < vm.epoch) throw new Refusal('stale_epoch', `epoch ${vm.epoch} was seen`);
    if (vm?.status !== 'running') throw new Refusal('vm_not_running', `the VM is ${vm?.status ?? 'not here'}`);
    this.#refuseIfScripted(this.refuseClones, undefined, clone.epoch);
    if (this.cloned.has(id)) return { outcome: 'cloned' };
    const until = performance.now() + this.cloneMs;
    const finished = this.#pauseOf('clone');
    while (performance.now() < until && !finished.aborted) {
      await delay(5);
      // Other calls may change the status meanwhile.
      const { status }: VmView = vm;
      if (status !== 'running' || vm.overtaken.signal.aborted)
        throw new Refusal('vm_not_running', `the VM is ${status}`);
    }
    const result = this.cloneResults.shift() ?? { outcome: 'cloned' };
    if (result.outcome === 'cloned') this.cloned.set(id, (this.cloned.get(id) ?? 0) + 1);
    return result;
  }

  async #destroy(id: string, epoch: number): Promise<unknown> {
    this.calls.push({ verb: 'DELETE', id, epoch });
    const vm = this.#vms.get(id);
    const seen = Math.max(this.#fences.get(id) ?? 0, vm?.epoch ?? 0);
    if (epoch < seen) throw new Refusal('stale_epoch', `epoch ${seen} was seen`);
    this.#fences.set(id, epoch);
    if (vm !== undefined) {
      vm.overtaken.abort();
      await vm.done.catch(() => undefined);
      this.#vms.delete(id);
    }
    return { id, epoch, status: 'destroyed' };
  }

  /**
   * Waits until no other work of the VM is in progress. Work of the same verb and epoch is awaited
   * too and reported as done.
   */
  async #turn(id: string, epoch: number, verb: 'sleeping' | 'waking' | 'resizing'): Promise<StandInVm | undefined> {
    for (;;) {
      const fence = this.#fences.get(id) ?? 0;
      const vm = this.#vms.get(id);
      const seen = Math.max(fence + 1, vm?.epoch ?? 0);
      if (epoch < seen) throw new Refusal('stale_epoch', `epoch ${vm?.epoch ?? fence} was seen`);
      const under = vm?.resizing === true ? 'resizing' : vm?.status;
      if (
        vm === undefined ||
        (under !== 'creating' && under !== 'sleeping' && under !== 'waking' && under !== 'resizing')
      )
        return vm;
      if (under === verb && vm.epoch === epoch) await vm.done;
      else await vm.done.catch(() => undefined);
    }
  }

  /** Rejects with `superseded` if a destroy overtakes it. */
  #work(vm: StandInVm, verb: HostVerb, ms: number, finish: () => void): Promise<void> {
    const work = (async () => {
      const signal = AbortSignal.any([vm.overtaken.signal, this.#pauseOf(verb)]);
      if (ms > 0) await delay(ms, undefined, { signal }).catch(() => undefined);
      if (vm.overtaken.signal.aborted) throw new Refusal('superseded', 'a destroy overtook it');
      if (vm.status !== 'dead') finish();
    })();
    // Awaited by its caller, if any.
    work.catch(() => undefined);
    return work;
  }

  #refuseIfScripted(script: ScriptedRefusal[], vm: StandInVm | undefined, epoch: number): void {
    const refused = script.shift();
    if (refused === undefined) return;
    if (vm !== undefined && AFTER_WORK.has(refused.code)) vm.epoch = epoch;
    throw new Refusal(refused.code, refused.message, refused.shortage);
  }
}

/** Metrics of an idle VM of the smallest size. */
export function idleMetrics(): VmMetrics {
  return {
    sampledAtUnixMs: Date.now(),
    guest: {
      uptimeSeconds: 60,
      vcpu: 1,
      cpuBusyMs: 600,
      load: [0.1, 0.1, 0.1],
      memoryTotalMib: 960,
      memoryUsedMib: 120,
      diskTotalMib: 10_000,
      diskUsedMib: 500,
      networkInBytes: 1_000,
      networkOutBytes: 2_000,
      processes: 12,
    },
    host: {
      cpuMs: 900,
      residentMib: 300,
      unsharedMib: 60,
      diskUsedMib: 20,
      networkInBytes: 1_100,
      networkOutBytes: 2_100,
    },
  };
}

async function textOf(request: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
