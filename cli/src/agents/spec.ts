// `berth agent`: conversations with the coding agents of sandboxes.
import { AGENT_SESSIONS_PAGE, AGENT_TEXT_CHARACTERS } from '@berth/sdk/limits';
import { wholeNumber } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec } from '../program/command-spec.ts';
import { SANDBOX } from '../program/sandbox-argument.ts';

const SBX = 'sbx_uodiunxlni4uyqmllemsqh4l';
const AGS = 'ags_4hgk2f6z5uq3vw7xjn2mtdra';
const SESSION = { name: '<session>', about: 'agent session id' };
const MOST_REPLIES = 1_000_000;
const ENDS =
  'Exit codes: 0 the turn completed, 3 the agent waits for an answer and there is no terminal, ' +
  '5 the turn failed, 6 it was interrupted or canceled';

const start: CommandSpec = {
  name: 'start',
  summary: 'start a conversation with the coding agent of a sandbox, and print its session id',
  details:
    'Waits until the agent is ready, at most 90 s. ' +
    'The agent needs a model key of the project (berth project agent-credentials set) ' +
    'or a sign-in in the sandbox (berth agent sign-in).',
  arguments: [SANDBOX],
  examples: [`SESSION=$(berth agent start ${SBX})`],
  load: async () => (await import('./start.ts')).startSession,
};

const ls: CommandSpec = {
  name: 'ls',
  summary: 'list agent sessions in all of your orgs, newest first',
  details: 'Shows the last known states and wakes nothing. Without --org and --project, lists all orgs and projects.',
  options: [
    { flags: '--needs-you', about: 'only sessions whose agent waits for an answer' },
    { flags: '--sandbox <sandbox>', about: 'only sessions of this sandbox', fields: ['sandboxId'] },
    { flags: '--org <id>', about: 'only sessions of this org' },
    { flags: '--project <id>', about: 'only sessions of this project' },
    {
      flags: '--limit <n>',
      about: `maximum number of sessions (default: ${AGENT_SESSIONS_PAGE.default})`,
      parse: wholeNumber(1, AGENT_SESSIONS_PAGE.max),
    },
    { flags: '--after <cursor>', about: 'continue behind this cursor' },
    { flags: '--all', about: 'list all sessions' },
    { flags: '-q, --quiet', about: 'print only ids' },
  ],
  examples: [
    'berth agent ls --needs-you',
    `berth agent ls --sandbox ${SBX}`,
    "berth agent ls --all --json | jq -r '.sessions[].id'",
  ],
  load: async () => (await import('./ls.ts')).listSessions,
};

const get: CommandSpec = {
  name: 'get',
  summary: 'show a session with its last turns and its pending approval',
  arguments: [SESSION],
  options: [
    { flags: '--full', about: 'show up to 128 KiB of the pending approval, with its folder', fields: ['detail'] },
  ],
  examples: [`berth agent get ${AGS}`, `berth agent get ${AGS} --full --json | jq .pendingInput`],
  load: async () => (await import('./ls.ts')).getSession,
};

const send: CommandSpec = {
  name: 'send',
  summary: 'send a message to the agent, and print the id of its turn',
  details:
    `Sends once; a message has at most ${AGENT_TEXT_CHARACTERS} UTF-16 code units. ` +
    'If the response is lost, exits with 7 and names the key: the same text with --key KEY runs at most once. ' +
    'With --wait, prints the replies on stdout until the turn ends; in a terminal, asks for decisions on approvals. ' +
    `${ENDS}, 7 the message may have been delivered.`,
  arguments: [SESSION, { name: '[text...]', about: 'message; without it or with -, stdin is read' }],
  options: [
    { flags: '-w, --wait', about: 'print the replies, and wait for the end of the turn' },
    { flags: '--key <key>', about: 'key of the message (default: random), to repeat one', fields: ['requestKey'] },
  ],
  examples: [
    `berth agent send ${AGS} 'Run the tests and fix what fails' --wait`,
    `berth agent send ${AGS} < task.md`,
    `berth agent send ${AGS} --key nightly-2026-11-24 'Update the dependencies'`,
  ],
  load: async () => (await import('./send.ts')).send,
};

const log: CommandSpec = {
  name: 'log',
  summary: 'print the replies of a session, oldest first, and the cursor behind them',
  details:
    'After the last reply, reports why the last turn failed or was canceled. ' +
    'With --json, each page of the API is a JSON object. ' +
    'With --follow, also prints the replies of the active turn as they arrive, with --json each as a line of JSON, ' +
    `until the turn ends. ${ENDS}.`,
  arguments: [SESSION],
  options: [
    { flags: '--after <cursor>', about: 'only replies behind this cursor' },
    { flags: '--limit <n>', about: 'maximum number of replies (default: all)', parse: wholeNumber(1, MOST_REPLIES) },
    { flags: '-f, --follow', about: 'follow the active turn to its end' },
  ],
  examples: [`berth agent log ${AGS} --follow`, `berth agent log ${AGS} --json | jq -r '.messages[].text'`],
  load: async () => (await import('./log.ts')).showLog,
};

const answer: CommandSpec = {
  name: 'answer',
  summary: 'decide on the pending approval of a session',
  details:
    'Shows the approval in full and asks. For scripts, --decision with the request id answers without a question. ' +
    'accept: the agent carries out the action. decline: it does not, and goes on. cancel: the turn ends. ' +
    'The first answer counts; repeating it succeeds.',
  arguments: [SESSION, { name: '[request]', about: 'request id of the approval', fields: ['requestId'] }],
  options: [{ flags: '--decision <decision>', about: 'the decision', choices: ['accept', 'decline', 'cancel'] }],
  examples: [`berth agent answer ${AGS}`, `berth agent answer ${AGS} 3 --decision decline`],
  load: async () => (await import('./answer.ts')).answer,
};

const interrupt: CommandSpec = {
  name: 'interrupt',
  summary: 'end the active turn of a session, with the commands it runs',
  details: 'Prints how the turn ended. The conversation continues with the next message.',
  arguments: [SESSION],
  options: [{ flags: '--no-wait', about: 'do not wait for the end of the turn' }],
  examples: [`berth agent interrupt ${AGS}`],
  load: async () => (await import('./answer.ts')).interrupt,
};

const recover: CommandSpec = {
  name: 'recover',
  summary: 'restart stopped sessions with their conversations; replays nothing',
  details:
    'The sandbox must be awake. A ready session stays as it is. Waits until the agent is ready, at most 90 s. ' +
    'Tries every session; the exit code is 1 if any failed.',
  arguments: [{ name: '<sessions...>', about: 'agent session ids' }],
  examples: [`berth agent recover ${AGS}`],
  load: async () => (await import('./start.ts')).recoverSessions,
};

const chat: CommandSpec = {
  name: 'chat',
  summary: 'talk to the agent in this terminal',
  details:
    'Takes a session, or a sandbox: continues its newest managed session, or starts one. ' +
    'Shows each approval in full and asks. Ctrl-C interrupts the turn, a second Ctrl-C leaves; Ctrl-D leaves. ' +
    'Replies of turns that others start are not shown while it waits for a message: berth agent log prints them. ' +
    'A turn continues when you leave. A message is sent with a key, so that it runs at most once, ' +
    'also if the connection breaks.',
  arguments: [{ name: '<session-or-sandbox>', about: 'agent session id, or a sandbox' }],
  options: [{ flags: '--new', about: 'start a session in the sandbox' }],
  examples: [`berth agent chat ${SBX}`, `berth agent chat ${AGS}`],
  json: false,
  load: async () => (await import('./chat.ts')).chat,
};

const open: CommandSpec = {
  name: 'open',
  summary: "open the agent's own program in a terminal of the sandbox",
  details:
    'Starts the program if it does not run. Everyone who opens it shares one terminal. ' +
    'Ctrl-P Ctrl-Q leaves it; the program goes on, also while nobody is connected, and over sleep and wake. ' +
    'While it is open, it keeps the sandbox awake. Sessions of berth agent start are other conversations.',
  arguments: [SANDBOX],
  examples: [`berth agent open ${SBX}`],
  json: false,
  load: async () => (await import('./open.ts')).openTerminal,
};

const signIn: CommandSpec = {
  name: 'sign-in',
  summary: "open the agent's own sign-in in a terminal of the sandbox",
  details:
    'Prints a URL to open in any browser: codex login --device-auth, or claude auth login. ' +
    "The sign-in is stored on the sandbox's disk. A model key of the project takes precedence.",
  arguments: [SANDBOX],
  examples: [`berth agent sign-in ${SBX}`],
  json: false,
  load: async () => (await import('./sign-in.ts')).signIn,
};

export const agentGroup: GroupSpec = {
  name: 'agent',
  summary: 'talk to the coding agents of sandboxes',
  commands: [start, ls, get, send, log, answer, interrupt, recover, chat, open, signIn],
};
