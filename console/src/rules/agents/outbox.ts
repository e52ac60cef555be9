// A message from its first character to its turn. Pure: the page performs what a state asks for.
//
//   draft ──send──> sending ──its turn is known──> draft, empty
//     │  ^             │  ^
//     │  └─refused─────┤  └─resend─┐
//     │                └─lost──> checking ──lost too often──> draft, unsure
//     └──interrupt──> interrupting ──the turn has ended──> sending
//
// A key belongs to one text and one sign-in, as the service keeps it. The text is sent with no
// other key until its fate is known, so it runs at most once.
import { BerthError } from '@berth/sdk';

/** Why the text is still here. */
interface Note {
  /** `unsure`, `signed_in_again`, `turn_failed`, or the code of an error. */
  code: string;
  message: string;
}

export interface Outbox {
  name: 'draft' | 'interrupting' | 'sending' | 'checking';
  text: string;
  /** Key of the text; null: it was never sent. */
  key: string | null;
  /** Sign-in under which it may have arrived; null: it has not. */
  signIn: string | null;
  /** Attempts without a response. */
  lost: number;
  note: Note | null;
}

export type OutboxEvent =
  | { type: 'edit'; text: string }
  /** `key`: for a text without one. */
  | { type: 'send'; key: string; signIn: string }
  | { type: 'resend'; signIn: string }
  | { type: 'interrupt' }
  | { type: 'stop' }
  | { type: 'failed'; error: Error }
  | { type: 'sent'; state: string };

export const EMPTY: Outbox = { name: 'draft', text: '', key: null, signIn: null, lost: 0, note: null };

const RESEND_AFTER_MS = [1_000, 2_000, 4_000] as const;

export const resendAfterMs = ({ lost }: Outbox): number => RESEND_AFTER_MS[lost - 1] ?? 0;

/** Whether the request may have had an effect all the same. */
function isLost(error: Error): boolean {
  if (!(error instanceof BerthError)) return true;
  const { code, status = 500 } = error;
  return code === 'invalid_answer' || (status >= 500 && code !== 'agent_bridge_not_ready');
}

export function nextOutbox(state: Outbox, event: OutboxEvent): Outbox {
  const { name, text, key, signIn } = state;
  switch (event.type) {
    case 'edit':
      if (name !== 'draft' || event.text === text) return state;
      return { ...EMPTY, text: event.text, note: isUnsure(state.note) ? state.note : null };
    case 'send':
      if ((name !== 'draft' && name !== 'interrupting') || text.trim() === '') return state;
      if (key !== null && signIn !== null && signIn !== event.signIn) return signedInAgain(state);
      return { ...state, name: 'sending', key: key ?? event.key, signIn: event.signIn, lost: 0, note: null };
    case 'resend':
      if (name !== 'checking') return state;
      return signIn === event.signIn ? { ...state, name: 'sending' } : signedInAgain(state);
    case 'interrupt':
      return name === 'draft' ? { ...state, name: 'interrupting', note: null } : state;
    case 'stop':
      return name === 'interrupting' ? { ...state, name: 'draft' } : state;
    case 'failed':
      return afterFailure(state, event.error);
    case 'sent':
      if (name !== 'sending') return state;
      return event.state === 'failed' ? { ...EMPTY, text, note: { code: 'turn_failed', message: '' } } : EMPTY;
  }
}

function afterFailure(state: Outbox, error: Error): Outbox {
  const { name, key, lost } = state;
  const { code = '', message } = error as Partial<BerthError> & Error;
  if (name === 'checking' || (name === 'sending' && isLost(error))) {
    if (lost < RESEND_AFTER_MS.length) return { ...state, name: 'checking', lost: lost + 1 };
    return { ...state, name: 'draft', note: { code: 'unsure', message } };
  }
  const note = isUnsure(state.note) ? state.note : { code, message };
  if (name !== 'sending') return { ...state, name: 'draft', note };
  return { ...state, name: 'draft', key: code === 'request_key_conflict' ? null : key, signIn: null, note };
}

const isUnsure = (note: Note | null): boolean => ['unsure', 'signed_in_again'].includes(note?.code ?? '');

/** The service would take the key of another sign-in for a new message: the person decides. */
function signedInAgain({ text }: Outbox): Outbox {
  return { ...EMPTY, text, note: { code: 'signed_in_again', message: '' } };
}

/** After a reload: a message on its way is checked, everything else is a draft. */
export function restoredOutbox(stored: string | null): Outbox {
  try {
    const state = { ...EMPTY, ...(JSON.parse(stored ?? '{}') as Partial<Outbox>) };
    const sent = state.key !== null && (state.name === 'sending' || state.name === 'checking');
    return { ...state, name: sent ? 'checking' : 'draft', lost: sent ? 1 : 0 };
  } catch {
    return EMPTY;
  }
}
