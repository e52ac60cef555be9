// docs/access.md as it follows from the contract: which role has which permission, what a token
// adds to that, and what each route takes. Text only: contract/test/document/print-access-table.ts prints
// it.
import { agentTokenAccess, agentTokenPermissions } from '../access/agent-tokens.ts';
import { permission, role, ROLE_PERMISSIONS } from '../route/permissions.ts';
import { AUTH_KINDS, type AuthKind, type Route } from '../route/route.ts';
import { ROUTES } from '../routes.ts';

const KIND_HEADINGS: { readonly [kind in AuthKind]: string } = {
  session: 'session',
  api_key: 'API key',
  agent_token: 'personal token',
};
const YES = '✓';
const NO = '';

/** What docs/access.md holds, to the byte. */
export function accessTable(): string {
  return `# Who may do what

Printed from \`contract/src\` by \`npm run docs:access\`; \`contract/test/document/access-table.test.ts\` fails when it is not what the contract says. That the
server does exactly this, with every kind of token on every route, is shown by \`api/test/sweeps/access-sweep.test.ts\`.

A call is allowed when the route takes the kind of token, the token's holder is a member of the org that the path belongs to, and the holder's role
there **now** has the route's permission and the token grants it. A session token grants what the role has. An API key grants its scopes (all, when
it has none set; nothing, when they are \`[]\`) in its own org alone, and never more than its creator's role. A personal agent token grants what the
second table says, never more than its creator's role, in all of the creator's orgs.

## Roles

${table(
  ['Permission', ...role.options],
  permission.options.map((name) => [code(name), ...role.options.map((who) => mark(ROLE_PERMISSIONS[who].has(name)))]),
)}
Making, changing, removing and inviting owners needs \`org.owners.manage\` besides \`org.members.manage\`. Making a public preview
link, and seeing the URL of one, needs \`sandbox.preview.share\` besides \`sandbox.preview\`.

## Personal agent tokens

${table(
  [
    'Permission',
    ...agentTokenAccess.options.map(code),
    `${code('read_send')} with ${code('canApprove')}`,
    `${code('read_send')} with ${code('canWake')}`,
  ],
  agentTokenRows(),
)}
\`canApprove\` and \`canWake\` can be combined with one another, and not with \`read_only\`.

## Routes

What needs no token at all is listed in [spec-gaps.md](spec-gaps.md#what-is-answered-without-a-bearer-token).

${table(
  ['Route', 'Permission', 'Roles', ...AUTH_KINDS.map((kind) => KIND_HEADINGS[kind])],
  ROUTES.filter(({ auth }) => auth.length > 0).map(routeRow),
)}`;
}

function agentTokenRows(): string[][] {
  const kinds = [
    ...agentTokenAccess.options.map((access) => ({ access, canApprove: false, canWake: false })),
    { access: 'read_send' as const, canApprove: true, canWake: false },
    { access: 'read_send' as const, canApprove: false, canWake: true },
  ].map(agentTokenPermissions);
  const granted = permission.options.filter((name) => kinds.some((grants) => grants.has(name)));
  return granted.map((name) => [code(name), ...kinds.map((grants) => mark(grants.has(name)))]);
}

function routeRow(route: Route): string[] {
  return [
    code(`${route.method} ${route.path}`),
    route.permission === null ? 'none' : code(route.permission),
    rolesOf(route),
    ...AUTH_KINDS.map((kind) => mark(route.auth.includes(kind))),
  ];
}

function rolesOf({ permission: needed, path }: Route): string {
  if (needed === null) return path.includes('{orgId}') ? 'any member' : 'any caller';
  return role.options.filter((who) => ROLE_PERMISSIONS[who].has(needed)).join(', ');
}

function code(text: string): string {
  return `\`${text}\``;
}

function mark(has: boolean): string {
  return has ? YES : NO;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|\n`;
  return `${line(head)}|${'---|'.repeat(head.length)}\n${rows.map(line).join('')}`;
}
