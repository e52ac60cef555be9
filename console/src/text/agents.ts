// Texts of agent sessions. Unknown values are shown by their names.
type Words = Readonly<Record<string, string>>;

const STATUSES: Words = {
  available: 'Ready for a message',
  busy: 'At work',
  needs_input: 'Waits for you',
  starting: 'Starting',
  asleep: 'Asleep',
  stopped: 'Stopped',
  unsupported: 'In its terminal',
  gone: 'Gone',
};

/** The word of a value, or the value itself. */
export const named =
  (words: Words) =>
  (value: string): string =>
    words[value] ?? value;

export const agentsText = {
  title: 'Agent sessions',
  hint: 'Conversations with the coding agents of your sandboxes, as last known. Looking at them wakes nothing.',
  sandboxHint:
    'Each session is a conversation of its own with the coding agent of this sandbox. Its terminal shows the ' +
    "agent's own program, and keeps the sandbox awake while it is open.",
  start: 'New session',
  terminal: 'in the terminal',
  openTerminal: 'Open its terminal',
  starting: 'Starting…',
  startFailed: 'The session was not started',
  asleep: 'A new session needs the sandbox awake. Opening this page does not wake it.',
  empty: 'No agent sessions',
  emptyHint: 'A session starts on the page of a sandbox, on the command line, or through the API.',
  command: 'berth agent start SANDBOX',
  columns: { agent: 'Agent', state: 'State', sandbox: 'Sandbox', turn: 'Last turn', created: 'Started' },
  noSignIn: 'The service does not know the sign-in of this page. Reload it.',
  none: '–',
  crumbs: 'Breadcrumb',
  open: 'Open',
  of: (action: string, { agentLabel, id }: { agentLabel: string; id: string }) => `${action} ${agentLabel}, ${id}`,
  status: named(STATUSES),
  turnState: named({
    sending: 'Being delivered',
    running: 'Running',
    waiting: 'Waits for an approval',
    interrupting: 'Being interrupted',
    completed: 'Completed',
    failed: 'Failed',
    canceled: 'Canceled',
  }),
  views: { label: 'Views', all: 'All sessions', inbox: 'Inbox', history: 'Answers so far' },
  nobodyWaits: 'No agent waits for you',
  nobodyWaitsHint: 'Agents that ask before they act appear here, the longest waiting first.',
  review: 'Review',
  reviewHint: 'Closing it answers nothing.',
  close: 'Close',
  filtersLabel: 'Filter agent sessions',
  filters: { org: 'Org', allOrgs: 'All orgs', project: 'Project', allProjects: 'All projects' },
  oneSandbox: (id: string) => `Only sessions of ${id}`,
  clear: 'Show all sessions',
} as const;
