// Agent sessions of all orgs of the person. The filters are in the address.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useSearchParams } from 'react-router';
import { agentSessionQuery, agentSessionsQuery, inboxQuery, type SessionFilter } from '../../queries/agent-sessions.ts';
import { orgsQuery, projectsQuery } from '../../queries/orgs.ts';
import { PATHS } from '../../rules/paths.ts';
import { agentsText as text } from '../../text/agents.ts';
import { optionsOf, SelectField } from '../../ui/forms/index.ts';
import { Button, Dialog, Notice, Page, Untrusted, useDialogHost } from '../../ui/kit/index.ts';
import { InOrg, Loaded } from '../frame/content.tsx';
import { useCurrentOrg } from '../frame/current-org.ts';
import { Approval } from './approval.tsx';
import { SessionRecords } from './session-records.tsx';
import sandboxCss from '../sandboxes/sandbox.module.css';
import css from './agents.module.css';

const FILTERS = ['orgId', 'projectId', 'sandboxId'] as const;

export function AgentSessionsPage() {
  const [search] = useSearchParams();
  const isInbox = search.get('needsYou') === 'true';
  const { org } = useCurrentOrg();
  return (
    <Page key={String(isInbox)} title={isInbox ? text.views.inbox : text.title}>
      <nav className={sandboxCss.tabs} aria-label={text.views.label}>
        <Link to={PATHS.agentSessions()} aria-current={isInbox ? undefined : 'page'}>
          {text.views.all}
        </Link>
        <Link to={PATHS.inbox} aria-current={isInbox ? 'page' : undefined}>
          {text.views.inbox}
        </Link>
        {org === undefined ? null : (
          <Link to={PATHS.activity(org.id, 'agent_prompt_answered')}>{text.views.history}</Link>
        )}
      </nav>
      {isInbox ? <Inbox /> : <AllSessions />}
    </Page>
  );
}

function AllSessions() {
  const [search, setSearch] = useSearchParams();
  const filter: SessionFilter = Object.fromEntries(
    FILTERS.flatMap((name) => (search.get(name) ? [[name, search.get(name)]] : [])),
  );
  const query = useInfiniteQuery(agentSessionsQuery(filter));
  const isFiltered = Object.keys(filter).length > 0;
  const empty = (
    <Notice title={text.empty} hint={text.emptyHint}>
      {isFiltered ? <Button onClick={() => setSearch({})}>{text.clear}</Button> : <code>{text.command}</code>}
    </Notice>
  );
  return (
    <>
      <div className={css.head}>
        <p>{text.hint}</p>
        <Filters filter={filter} onChange={(next) => setSearch({ ...next })} />
      </div>
      <Loaded query={query} empty={empty}>
        {(sessions) => <SessionRecords sessions={sessions} />}
      </Loaded>
    </>
  );
}

interface FiltersProps {
  filter: SessionFilter;
  onChange: (filter: SessionFilter) => void;
}

function Filters({ filter: { orgId = '', projectId = '', sandboxId }, onChange }: FiltersProps) {
  const { data: orgs = [] } = useQuery(orgsQuery);
  const { data: projects = [] } = useQuery({ ...projectsQuery(orgId), enabled: orgId !== '' });
  return (
    <search className={css.filters} aria-label={text.filtersLabel}>
      {sandboxId === undefined ? null : <Untrusted text={text.oneSandbox(sandboxId)} />}
      <SelectField
        label={text.filters.org}
        value={orgId}
        options={optionsOf(orgs, text.filters.allOrgs)}
        onChange={(id) => onChange(id === '' ? {} : { orgId: id })}
      />
      {orgId === '' ? null : (
        <SelectField
          label={text.filters.project}
          value={projectId}
          options={optionsOf(projects, text.filters.allProjects)}
          onChange={(id) => onChange(id === '' ? { orgId } : { orgId, projectId: id })}
        />
      )}
    </search>
  );
}

const EMPTY = <Notice title={text.nobodyWaits}>{text.nobodyWaitsHint}</Notice>;

/** Agents that wait for the person, the longest first. Each is reviewed in place. */
function Inbox() {
  return (
    <Loaded query={useQuery(inboxQuery)} rows={3} empty={EMPTY}>
      {(sessions) => (
        <SessionRecords
          sessions={sessions}
          renderAction={(session) => (
            <Button aria-label={text.of(text.review, session)} dialog={<Review sessionId={session.id} />}>
              {text.review}
            </Button>
          )}
        />
      )}
    </Loaded>
  );
}

/** Over the list, so that nothing moves below a finger. */
function Review({ sessionId }: { sessionId: string }) {
  const { close } = useDialogHost();
  return (
    <Dialog title={text.review} description={text.reviewHint} onClose={close}>
      {/* First, since the dialog focuses its first button: Enter must accept nothing. */}
      <p>
        <Button onClick={close}>{text.close}</Button>
      </p>
      <Loaded query={useQuery(agentSessionQuery(sessionId))} rows={3}>
        {(session) => (
          <InOrg value={session.orgId}>
            <Approval session={session} />
          </InOrg>
        )}
      </Loaded>
    </Dialog>
  );
}
