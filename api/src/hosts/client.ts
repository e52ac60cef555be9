// The client of a host daemon, over a unix socket or TCP. Uses no sandbox rows, and never retries a
// verb with an unknown outcome, except on a pooled connection that was already closed.
import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';
import { clone, type GuestCloneResult, type VmClone } from '@berth/protocol/calls/clones.ts';
import {
  openPort,
  openTerminal,
  STREAM_HEADERS,
  terminalQueryOf,
  type AgentTerminalAsked,
  type TerminalAsked,
} from '@berth/protocol/calls/connections.ts';
import type { CallSpec, HostRequestOf, PartsOf, ResponseOf } from '@berth/protocol/calls/define.ts';
import { exec, run, type GuestExecResult, type GuestRunRequest } from '@berth/protocol/calls/exec.ts';
import {
  listEntries,
  listFiles,
  openFile,
  openPart,
  readFile,
  writeFile,
  type FileOpened,
  type FileWritten,
} from '@berth/protocol/calls/files.ts';
import { vmHistoryCall, vmMetricsCall, type VmHistory, type VmMetrics } from '@berth/protocol/calls/metrics.ts';
import { followProcess, type ProcessFollowed } from '@berth/protocol/calls/processes.ts';
import { setModelAccess, type ModelAccess } from '@berth/protocol/calls/model-access.ts';
import {
  createVm,
  destroyVm,
  info,
  listVms,
  resizeVm,
  setEgress,
  sleepVm,
  sshHostKey,
  wakeVm,
  type HostInfo,
  type VmSshHostKey,
} from '@berth/protocol/calls/vms.ts';
import type { EgressPolicy } from '@berth/protocol/egress.ts';
import type { VmSpec, VmView } from '@berth/protocol/host.ts';
import { CallClient } from '@berth/protocol/http/client.ts';
import { GatheredBytes } from '@berth/protocol/http/gathered-bytes.ts';
import type { CallOptions, CallRequest } from '@berth/protocol/http/peer.ts';
import type { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { AbandonedStreams } from './abandoned-streams.ts';
import { orEarlier } from './earlier.ts';
import { HostError, tooManyStreams } from './error.ts';
import { HostPeer } from './peer.ts';

interface HostClientOptions {
  /** `unix:/path/to/socket` or `http://address:port`. */
  url: string;
  /** Returns the bearer token of the host. */
  token: () => string;
  /** Open streams of this process. */
  streams: SharedCapacity;
}

/** A VM, and the org whose share of streams its connections take. */
export interface OwnedVm {
  vmId: string;
  orgId: string;
}

interface ReadOptions extends CallOptions {
  /** Called before more bytes are kept; an error that it throws ends the call. */
  onBytes?: (bytes: number) => void;
}

/** A create or wake of one epoch. `dataKey`: see the protocol. */
interface VmOrder {
  epoch: number;
  spec: VmSpec;
  dataKey?: string | undefined;
}

type VmSize = Pick<VmSpec, 'vcpu' | 'memoryMib' | 'diskGib'>;

/**
 * Calls one host. Every method rejects with {@link HostError}, or with the reason of the caller's
 * signal.
 */
export class HostClient {
  readonly url: string;
  readonly #peer: HostPeer;
  readonly #calls: CallClient;
  readonly #streams: SharedCapacity;
  readonly #abandoned = new AbandonedStreams((call, request) => this.call(call, request));

  constructor({ url, token, streams }: HostClientOptions) {
    this.url = url;
    this.#streams = streams;
    this.#peer = new HostPeer(url, token);
    this.#calls = new CallClient(this.#peer);
  }

  /** Sends a JSON call. */
  call<C extends CallSpec>(call: C, request: HostRequestOf<C>, options?: CallOptions): Promise<ResponseOf<C>> {
    return this.#calls.call(call, request as CallRequest<C>, options);
  }

  /** Describes the host: its identity, capacity and reservations. */
  info(options?: CallOptions): Promise<HostInfo> {
    return this.call(info, {}, options);
  }

  /** Lists the VMs that the host has on record, without destroyed ones. */
  async listVms(options?: CallOptions): Promise<VmView[]> {
    return (await this.call(listVms, {}, options)).vms;
  }

  /**
   * Resolves when the VM runs, created by this call or an earlier one of the same epoch. Waits at
   * least as long as the deadline set by the host's operator.
   */
  async createVm(vmId: string, { epoch, ...body }: VmOrder, options: CallOptions = {}): Promise<VmView> {
    const call = { vmId, epoch, body };
    try {
      return await this.call(createVm, call, options);
    } catch (error) {
      if (!(error instanceof HostError) || error.code !== 'host_timeout' || options.deadlineMs !== undefined)
        throw error;
      const { createDeadlineMs = 0 } = await this.info({ signal: options.signal }).catch(() => Promise.reject(error));
      const leftMs = createDeadlineMs - createVm.deadlineMs;
      if (leftMs <= 0) throw error;
      // Joins the create in progress.
      return this.call(createVm, call, { ...options, deadlineMs: leftMs });
    }
  }

  /** Resolves when the host enforces the policy, or one of a higher revision. */
  setEgress(vmId: string, { epoch, egress }: { epoch: number; egress: EgressPolicy }, options?: CallOptions) {
    return this.call(setEgress, { vmId, epoch, body: { egress } }, options);
  }

  /**
   * Resolves when the agents of a `running` VM call models with these keys, and no longer with
   * others. Repeat it after a wake and after a restart of the host daemon, which forget the keys.
   */
  async setModelAccess(
    vmId: string,
    { epoch, ...body }: ModelAccess & { epoch: number },
    options?: CallOptions,
  ): Promise<void> {
    await this.call(setModelAccess, { vmId, epoch, body }, options);
  }

  /** Resolves when the VM is `asleep`: captured, durable, its QEMU process gone. */
  sleepVm(vmId: string, { epoch, ...body }: Omit<VmOrder, 'spec'>, options?: CallOptions): Promise<VmView> {
    return this.call(sleepVm, { vmId, epoch, body }, options);
  }

  /**
   * Resolves when the VM runs, from its snapshot or by a boot of its disk, as reported by `woke`;
   * `spec` of the response is its size.
   */
  wakeVm(vmId: string, { epoch, ...body }: VmOrder, options?: CallOptions): Promise<VmView> {
    return this.call(wakeVm, { vmId, epoch, body }, options);
  }

  /** Resolves when the growth is verified in the guest; `spec` of the response is its size. */
  resizeVm(vmId: string, request: { epoch: number; size: VmSize }, options?: CallOptions): Promise<VmView> {
    const { epoch, size } = request;
    return this.call(resizeVm, { vmId, epoch, body: { size } }, options);
  }

  /** Resolves when the VM's resources are released and the host has recorded the epoch. */
  destroyVm(vmId: string, epoch: number, options?: CallOptions): Promise<VmView> {
    return this.call(destroyVm, { vmId, epoch }, options);
  }

  /** Metrics of guest and host. The guest's have the right type but are untrusted. */
  metrics(vmId: string, options?: CallOptions): Promise<VmMetrics> {
    return this.call(vmMetricsCall, { vmId }, options);
  }

  /** The host's figures of a VM in the past. `route_not_found` from an older host. */
  metricsHistory(vmId: string, windowSeconds: number, options?: CallOptions): Promise<VmHistory> {
    return this.call(vmHistoryCall, { vmId, query: { windowSeconds } }, options);
  }

  /** The host key given to the VM at its creation; also for a sleeping VM. */
  sshHostKey(vmId: string, options?: CallOptions): Promise<VmSshHostKey> {
    return this.call(sshHostKey, { vmId }, options);
  }

  exec(vmId: string, body: GuestRunRequest, options?: CallOptions): Promise<GuestExecResult> {
    const { cwd, env, user, stdin, ...plain } = body;
    const hasOptions = [cwd, env, user, stdin].some((option) => option !== undefined);
    // Guests of every release know a command without options.
    return hasOptions ? this.call(run, { vmId, body }, options) : this.call(exec, { vmId, body: plain }, options);
  }

  /**
   * Clones a repository in the guest, or finds it cloned. After a disconnect the clone continues
   * briefly, for a retry.
   */
  clone(vmId: string, { epoch, ...body }: VmClone, options?: CallOptions): Promise<GuestCloneResult> {
    return this.call(clone, { vmId, epoch, body }, options);
  }

  /**
   * A raw stream to a TCP port of the guest, which can be half-closed (`allowHalfOpen`). The caller
   * destroys it; the host closes it when the VM stops running. Rejects with `port_refused` when
   * nothing listens, with `too_many_streams` beyond the share of the org. The signal aborts only
   * the opening.
   */
  openPort(vm: OwnedVm, port: number, options?: CallOptions): Promise<Duplex> {
    return this.#openStream(vm, (request) =>
      this.#calls.open(openPort, { ...request, params: { port: String(port) } }, options),
    );
  }

  /** A terminal or a command in the guest, with frames; otherwise as {@link openPort}. */
  openTerminal(vm: OwnedVm, asked: TerminalAsked | AgentTerminalAsked, options?: CallOptions): Promise<Duplex> {
    return this.#openStream(vm, (request) =>
      this.#calls.open(openTerminal, { ...request, query: terminalQueryOf(asked) }, options),
    );
  }

  /** The output of a process as it is written; otherwise as {@link openPort}. */
  followProcess(vm: OwnedVm, asked: ProcessFollowed, options?: CallOptions): Promise<Duplex> {
    return this.#openStream(vm, (request) => this.#calls.open(followProcess, { ...request, ...asked }, options));
  }

  /** The content of a file of any length, in or out; otherwise as {@link openPort}. */
  openFile(vm: OwnedVm, query: FileOpened, options?: CallOptions): Promise<Duplex> {
    return this.#openStream(vm, (request) => this.#calls.open(openFile, { ...request, query }, options));
  }

  /** An open file, of which the caller takes a part; otherwise as {@link openPort}. */
  openPart(vm: OwnedVm, path: string, options?: CallOptions): Promise<Duplex> {
    return this.#openStream(vm, (request) => this.#calls.open(openPart, { ...request, query: { path } }, options));
  }

  /** Bytes of a regular file of at most 8 MiB. Rejects with one of `FILE_ERRORS`. */
  readFile(vmId: string, path: string, options?: ReadOptions): Promise<Buffer> {
    return this.#read(readFile, { vmId, query: { path } }, options);
  }

  /** A listing `depth` levels deep, in the guest's format, for the protocol's `parseListing`. */
  listFiles(vmId: string, path: string, depth: number, options?: ReadOptions): Promise<Buffer> {
    const read = (call: typeof listEntries | typeof listFiles) =>
      this.#read(call, { vmId, query: { path, depth } }, options);
    return orEarlier(
      () => read(listEntries),
      () => read(listFiles),
    );
  }

  /** Writes a file atomically. Rejects as {@link readFile}. */
  writeFile(vmId: string, query: PartsOf<typeof writeFile>['query'], bytes: Buffer): Promise<FileWritten> {
    const upload = { bytes: bytes.length, content: Readable.from([bytes], { objectMode: false }) };
    return this.#calls.call(writeFile, { vmId, query, upload });
  }

  async #read<C extends CallSpec>(
    call: C,
    request: HostRequestOf<C>,
    { onBytes, ...options }: ReadOptions = {},
  ): Promise<Buffer> {
    const stream = await this.#calls.stream(call, request as CallRequest<C>, options);
    const gathered = new GatheredBytes();
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      onBytes?.(chunk.byteLength);
      gathered.add(chunk);
    }
    return gathered.whole();
  }

  /** Closes idle connections; calls in flight fail with `host_unreachable`. */
  close(): void {
    this.#peer.close();
  }

  async #openStream(
    { vmId, orgId }: OwnedVm,
    open: (request: { vmId: string; headers: Record<string, string> }) => Promise<Duplex>,
  ): Promise<Duplex> {
    const release = this.#streams.take(orgId);
    if (typeof release === 'string') throw tooManyStreams(release, this.#streams.places);
    const name = randomUUID();
    try {
      const stream = await open({ vmId, headers: { [STREAM_HEADERS.org]: orgId, [STREAM_HEADERS.stream]: name } });
      stream.once('close', () => {
        release();
        if (!stream.readableEnded) this.#abandoned.add(name);
      });
      return stream;
    } catch (error) {
      release();
      throw error;
    }
  }
}
