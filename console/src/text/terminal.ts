// Texts of the terminal.
import type { End } from '../rules/terminal/attachment.ts';

const SENTENCES: Readonly<Record<string, string>> = {
  sandbox_state_conflict: 'The sandbox is no longer awake. Its shell continues after a wake.',
  sandbox_not_found: 'The sandbox no longer exists.',
  unauthenticated: 'Your sign-in has ended, and the terminal with it.',
  permission_denied: 'You may no longer connect to this sandbox.',
  org_access_denied: 'You are no longer a member of the org.',
  shutting_down: 'The service is restarting.',
  stream_closed: 'The connection was lost.',
  connection_failed: 'The connection could not be opened. A sandbox has at most 64 terminals.',
  timeout: 'The service did not open the terminal in time.',
};

export const terminalText = {
  open: 'Terminal',
  label: (sandbox: string) => `Terminal of ${sandbox}. Control-Shift-Escape leaves it, on Windows Control-Shift-F6.`,
  tooMuchOutput: 'Too much output to read aloud. Move through the lines to read it.',
  session: 'Session',
  agent: 'Agent',
  titleOf: (title: string) => `Title: ${title}`,
  readAloud: 'Screen reader mode',
  keepsAwake:
    'While it is open, this terminal keeps the sandbox awake. ' +
    'Everyone who opens this session sees the same program, which goes on when you leave.',
  leave:
    'Ctrl-Shift-Escape leaves the terminal (on Windows Ctrl-Shift-F6). ' +
    'Shift-drag selects text (on a Mac Option-drag), Ctrl-Shift-C copies it.',
  states: { asking: 'Waiting for the sandbox…', connecting: 'Connecting…', open: 'Connected' },
  detached:
    'Released after 15 minutes in the background, so that the sandbox can sleep. ' +
    'Press a key in the terminal to reattach.',
  reattach: 'Reattach',
  statusTitle: (status: string) => `The sandbox is ${status.toLowerCase()}`,
  awake: 'A connected terminal keeps it awake.',
  asleep: 'A terminal needs it awake. Opening this page does not wake it.',
  connect: 'Connect',
  consentTitle: 'Run this command?',
  consent: 'The link to this page asks to run it in the sandbox. Run it only if you trust where the link is from.',
  run: 'Run the command',
  refuse: 'Open a shell instead',
  linkRefused: 'Only http and https addresses open.',
  link: { title: 'Link in the output', open: 'Open in a new tab', done: 'Dismiss' },
  sentence: ({ code, exitCode, message }: End) =>
    code === 'exited' ? `The program has ended with exit code ${String(exitCode)}.` : (SENTENCES[code] ?? message),
  buttons: { wake: 'Wake', reconnect: 'Reconnect', start: 'Start again' },
  keys: {
    label: 'Keys',
    Escape: 'Esc',
    Tab: 'Tab',
    ArrowLeft: 'Left',
    ArrowUp: 'Up',
    ArrowDown: 'Down',
    ArrowRight: 'Right',
    '|': '|',
    '~': '~',
    control: 'Ctrl',
    copy: 'Copy',
    paste: 'Paste',
    noPaste: 'The browser does not let this page read the clipboard. Use its own command to paste.',
  },
} as const;
