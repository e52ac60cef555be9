// A terminal from its opening to its end. Pure: the page performs what a state asks for.
//
//   closed -> asking (the status) -> connecting -> open -> ended(end)
//
// Each attempt asks for the status first: opening a terminal of a sleeping sandbox could wake it.
import { SANDBOX_STATES } from '@berth/sdk';

/** `asleep`: needs a wake. `detached`: released in the background, reattached by the next key. */
type ClosedWhy = 'consent' | 'asleep' | 'detached';

/** Action of the button under an end. */
type EndButton = 'wake' | 'reconnect' | 'start' | null;

export interface End {
  /** `exited`, or the code of an error. */
  code: string;
  exitCode: number | null;
  /** The service's words, for codes without a sentence. */
  message: string;
  button: EndButton;
}

export type TerminalState =
  | { name: 'closed'; why: ClosedWhy }
  /** `attempt`: failed attempts since the person asked, or since the terminal was open. */
  | { name: 'asking'; attempt: number }
  | { name: 'connecting'; attempt: number }
  | { name: 'open' }
  | { name: 'ended'; end: End };

export type TerminalEvent =
  /** The person opened the page or pressed a button. */
  | { type: 'open' }
  | { type: 'status'; status: string }
  | { type: 'opened' }
  | { type: 'exited'; exitCode: number }
  /** `lasting`: a new connection reattaches to the same shell. */
  | { type: 'failed'; code: string; message: string; lasting: boolean }
  | { type: 'detached' };

/** Pauses before attempts; the last end is shown. */
const RETRY_AFTER_MS = [0, 500, 1_000, 2_000, 4_000] as const;
/** Failures of the connection, not of the sandbox or the person's access. */
const TRANSIENT: readonly string[] = ['stream_closed', 'shutting_down', 'connection_failed'];
const REFUSED: readonly string[] = ['permission_denied', 'org_access_denied', 'sandbox_not_found', 'command_too_long'];

export const retryAfterMs = (attempt: number): number => RETRY_AFTER_MS[attempt] ?? 0;

type Phase = 'awake' | 'moving' | 'asleep';

/** An unknown status counts as asleep: it must not be woken by a look. */
export function phaseOf(status: string): Phase {
  const state = (SANDBOX_STATES as Readonly<Record<string, { awake: boolean; settled: boolean }>>)[status];
  if (state === undefined) return 'asleep';
  return state.awake ? 'awake' : state.settled ? 'asleep' : 'moving';
}

export function nextState(state: TerminalState, event: TerminalEvent): TerminalState {
  switch (event.type) {
    case 'open':
      return state.name === 'closed' || state.name === 'ended' ? { name: 'asking', attempt: 0 } : state;
    case 'status':
      return afterStatus(state, event.status);
    case 'opened':
      return state.name === 'connecting' ? { name: 'open' } : state;
    case 'exited':
      return state.name === 'open'
        ? ended({ code: 'exited', exitCode: event.exitCode, message: '', button: 'start' })
        : state;
    case 'failed':
      return afterFailure(state, event);
    case 'detached':
      return state.name === 'open' ? { name: 'closed', why: 'detached' } : state;
  }
}

function afterStatus(state: TerminalState, status: string): TerminalState {
  if (state.name !== 'asking') return state;
  const phase = phaseOf(status);
  if (phase === 'moving') return state;
  return phase === 'awake' ? { ...state, name: 'connecting' } : { name: 'closed', why: 'asleep' };
}

function afterFailure(state: TerminalState, event: TerminalEvent & { type: 'failed' }): TerminalState {
  if (state.name === 'closed' || state.name === 'ended') return state;
  const { code, message, lasting } = event;
  const attempt = state.name === 'open' ? 1 : state.attempt + 1;
  // A program that ended with its connection is not started again unasked.
  const mayRetry = lasting || state.name !== 'open';
  if (mayRetry && TRANSIENT.includes(code) && attempt < RETRY_AFTER_MS.length) return { name: 'asking', attempt };
  return ended({ code, exitCode: null, message, button: buttonOf(code, lasting) });
}

function buttonOf(code: string, lasting: boolean): EndButton {
  if (REFUSED.includes(code)) return null;
  if (code === 'sandbox_state_conflict') return 'wake';
  return lasting ? 'reconnect' : 'start';
}

const ended = (end: End): TerminalState => ({ name: 'ended', end });

/** Limit of bytes that the screen has not confirmed; beyond it the service holds the output. */
export const MOST_UNCONFIRMED = 524_288;
const RESUME_BELOW = 131_072;

/** Decides when to hold the output: the browser's WebSocket cannot be held back. */
export class Flow {
  #unconfirmed = 0;
  #paused = false;

  /** True if the output must be held now. */
  received(bytes: number): boolean {
    this.#unconfirmed += bytes;
    if (this.#paused || this.#unconfirmed <= MOST_UNCONFIRMED) return false;
    this.#paused = true;
    return true;
  }

  /** True if the output must come again. */
  confirmed(bytes: number): boolean {
    this.#unconfirmed -= bytes;
    if (!this.#paused || this.#unconfirmed >= RESUME_BELOW) return false;
    this.#paused = false;
    return true;
  }
}

const DETACH_AFTER_MS = 900_000;

/** Whether a terminal has been in the background, without keys, long enough to be released. */
export function letsGo(hiddenSince: number | null, now: number): boolean {
  return hiddenSince !== null && now - hiddenSince >= DETACH_AFTER_MS;
}

const RESIZE_EVERY_MS = 50;

/** Time until the next change of the size may be sent. */
export const resizeInMs = (sentAt: number, now: number): number => Math.max(0, sentAt + RESIZE_EVERY_MS - now);

const SHELLS = ['1', '2', '3', '4', '5', '6', '7', '8', '9'] as const;
/** The terminal of the sandbox's agent. */
export const AGENT_SESSION = 'agent';
export const SESSIONS = [...SHELLS, AGENT_SESSION] as const;

/** Session of an address; the first, unless it names another. */
export function sessionOf(search: URLSearchParams): string {
  const asked = search.get('session');
  return SESSIONS.find((session) => session === asked) ?? SESSIONS[0];
}

/** Lines that tmux keeps above the screen of a session. */
const HISTORY_LINES = 10_000;

/**
 * Command that attaches to the session's shell, or starts it. Without tmux it is a login shell that
 * ends with the connection. tmux shows no status line and takes the wheel, so that it scrolls
 * through the session's own history.
 */
export function shellCommand(session: string): string {
  return [
    'if command -v tmux >/dev/null; then',
    `tmux start ';' set -g history-limit ${HISTORY_LINES} ';' set -s 'terminal-features[90]' 'xterm*:hyperlinks:RGB'`,
    `';' new -A -s console-${session} ';' set status off ';' set mouse on && exit;`,
    "else echo 'tmux is missing: this shell ends with the page.'; fi;",
    'exec "$SHELL" -l',
  ].join(' ');
}
