// Texts of a conversation with an agent. Unknown values are shown by their names.
import { agentsText, named } from './agents.ts';

const failure = named({
  agent_error: 'The agent reported an error.',
  agent_ended: 'The agent ended. Nobody knows how far it got; nothing is repeated.',
  bridge_ended: 'The session ended. Nobody knows how far it got; nothing is repeated.',
  machine_lost: 'The VM was lost. Nobody knows how far the agent got; nothing is repeated.',
  not_delivered: 'The agent never got the message, and never will.',
});

const kinds = named({
  command: 'run a command',
  file_change: 'change files',
  permissions: 'get more permissions',
  tool: 'use a tool',
});

const decisions = named({ accept: 'Accept', decline: 'Decline', cancel: 'Cancel the turn' });
const consequences: Readonly<Record<string, string>> = {
  accept: 'The agent carries it out.',
  decline: 'The agent does not, and goes on.',
  cancel: 'The agent does not, and the turn ends.',
};
const outcomes = named({ accept: 'accepted', decline: 'declined', cancel: 'canceled the turn' });

const notes: Readonly<Record<string, string>> = {
  unsure: 'It is not known whether the message arrived. Check again: it runs at most once.',
  signed_in_again:
    'You have signed in again since the message was sent. It may have arrived: look at the turns before you send it ' +
    'again.',
  turn_failed: 'The turn of this message has failed: look at the turns. Its text is back here.',
  agent_turn_active: 'Another turn is active. Your text is kept.',
  session_retry_upgrade_required:
    'The agent’s bridge is too old to send safely. Recover the session after it has stopped, or start a new one.',
  request_key_conflict: 'The service knows another text by the key of this message. Look at the turns, then send it.',
};

export const conversationText = {
  hint: 'Prompts, their authors, and replies are shown as the sandbox reports them.',
  nothing: 'nothing',
  state: { label: 'State', sandbox: 'Sandbox', session: 'Session', turn: 'Turn', possible: 'Possible now' },
  bridge: named({
    starting: 'Starting',
    ready: 'Ready',
    suspended: 'Asleep with its sandbox',
    stopped: 'Stopped',
    gone: 'Gone with its sandbox',
  }),
  bridgeReason: named({
    not_ready: 'it was not ready in time',
    agent_ended: 'the agent ended',
    bridge_ended: 'its process ended',
    idle: 'it was idle; nothing is lost',
    memory: 'memory was short; nothing is lost',
    machine_lost: 'the VM was lost',
    not_signed_in: 'the agent is not signed in',
    conversation_missing: 'its conversation is missing',
  }),
  operation: named({
    messages: 'send messages',
    output: 'read replies',
    approvals: 'answer approvals',
    interruption: 'interrupt',
    recovery: 'recover',
  }),
  conversation: 'Conversation',
  empty: 'No messages yet',
  trimmed: 'Older parts are not shown.',
  someone: 'Someone',
  author: (name: string, kind: string) =>
    kind === 'session' ? name : `${name}, ${named({ api_key: 'API key', agent_token: 'agent token' })(kind)}`,
  truncated: 'The reply was longer than 131,072 characters; the rest is lost.',
  unfold: (length: number) => `Show all ${length.toLocaleString('en')} characters`,
  turnEnd: (state: string, reason: string | null) =>
    state === 'failed' ? `Failed. ${failure(reason ?? 'unknown')}` : agentsText.turnState(state),
  notRead: 'Not read',
  fresh: (count: number) => `${count} new`,
  asleep: 'The sandbox is asleep: wake it to read on. What was read stays. Opening this page does not wake it.',
  gone: 'The sandbox was deleted, and the conversation with it.',
  stopped: (reason: string | null) => `The session has stopped${reason === null ? '' : `: ${reason}`}.`,
  recover: 'Recover',
  recovering: (seconds: number) => `Recovering, ${seconds} s of at most 90 s…`,
  recoverFailed: 'The session was not recovered',
  noRecovery: 'Not possible now: the session must have stopped, and its sandbox be awake.',
  message: (agent: string) => `Message to ${agent}`,
  send: 'Send',
  sendHint: 'Ctrl-Enter sends.',
  states: {
    draft: '',
    sending: 'Sending…',
    checking: 'Checking whether it arrived…',
    interrupting: 'Waiting for the end of the turn, then sending…',
  },
  stop: 'Do not send',
  interrupt: 'Interrupt',
  interruptAndSend: 'Interrupt and send',
  interruptFailed: 'The turn was not interrupted',
  noInterrupt: 'This agent cannot be interrupted now.',
  checkAgain: 'Check again',
  noteTitle: (code: string) =>
    ['unsure', 'signed_in_again', 'turn_failed'].includes(code) ? 'It may have been sent' : 'The message was not sent',
  note: (code: string, message: string) => notes[code] ?? message,
  why: {
    empty: 'Write a message first.',
    long: (length: number, most: number) =>
      `Too long: ${length.toLocaleString('en')} of at most ${most.toLocaleString('en')} characters.`,
    busy: 'A turn is active, and messages are never queued.',
    closed: 'The session takes no messages now.',
  },
  approval: 'Approval',
  asks: (agent: string, kind: string) => `${agent} asks to ${kinds(kind)}`,
  folder: 'In the folder',
  detail: { isTruncated: 'This is not all of it.', notWhole: 'Show it whole first.', showWhole: 'Show it whole' },
  unread: 'What it asks for can be read only while the sandbox is awake.',
  tooLong: 'It is too long to be shown whole, so it cannot be accepted here.',
  decision: decisions,
  consequence: (decision: string) => consequences[decision] ?? '',
  answerFailed: 'The answer was not taken',
  answered: (name: string, decision: string) => `Answered by ${name}: ${outcomes(decision)}.`,
  withdrawn: 'The approval is no longer asked for.',
} as const;
