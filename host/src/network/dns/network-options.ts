// Options of a host daemon's network (see `network.ts`).
import type { AnswerMessage } from './questions.ts';
import type { NameServer } from './upstream-query.ts';

export interface NetworkOptions {
  /** Instance id: 8 characters a-z2-7. */
  instanceId: string;
  /**
   * The instance's data folder, recorded with each slot so that the doctor can find abandoned
   * slots.
   */
  dataFolder: string;
  /** BERTH_GUEST_CIDR. */
  cidr: string;
  /** Bound of each guest's traffic in each direction, in Mbit/s. */
  rateMbit?: number;
  /** The host's slot registry; default /run/berth/slots. All instances on a host must share it. */
  registryFolder?: string;
  /** Number of idle slots kept ready; default 8. */
  idleSlots?: number;
  /** Name servers for guests; default: those of /etc/resolv.conf, read again when it changes. */
  upstreams?: UpstreamSource;
  /** Answers messages of guests to their resolver; by default in this process. */
  answer?: AnswerMessage;
  /** Receives background events that no caller awaits. */
  log?: (event: NetworkLogEvent) => void;
}

/** Fixed name servers, or a file in resolv.conf's format. */
export type UpstreamSource = { servers: readonly NameServer[] } | { file: string };

export interface NetworkLogEvent {
  level: 'info' | 'warn';
  message: string;
  error?: unknown;
}
