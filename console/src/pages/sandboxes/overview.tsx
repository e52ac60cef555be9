// Tab of a sandbox: reason of its status, details.
import { useQuery } from '@tanstack/react-query';
import { AGENT_LABELS, type api } from '@berth/sdk';
import { projectsQuery } from '../../queries/orgs.ts';
import { sleepsAt } from '../../rules/status.ts';
import { en } from '../../text/en.ts';
import { Alert, CopyValue, Facts, Section, Time, Untrusted, useNow } from '../../ui/kit/index.ts';
import { ProjectName } from '../projects/project-name.tsx';
import { useSandboxInView } from './in-view.tsx';
import css from './facts.module.css';

/** A start that takes longer shows its causes. */
const SLOW_START_MS = 5_000;

export function OverviewPage() {
  const { sandbox } = useSandboxInView();
  return (
    <>
      {sandbox.statusReason === null ? null : (
        <div className={css.notice}>
          <Alert title={sandbox.status === 'failed' ? en.sandbox.failed : en.sandbox.lastFault}>
            <p>{sandbox.statusReason.message}</p>
          </Alert>
        </div>
      )}
      <Delays sandbox={sandbox} />
      <SandboxFacts />
    </>
  );
}

const text = en.sandbox;
const AGENTS: Readonly<Record<string, string>> = AGENT_LABELS;

function SandboxFacts() {
  const { sandbox } = useSandboxInView();
  const { agent, expiresAt, endUserId, wakesFrom } = sandbox;
  return (
    <Section className={css.facts} title={text.facts}>
      <Facts
        of={{
          [text.id]: <CopyValue value={sandbox.id} what={text.id} />,
          [text.project]: <ProjectName id={sandbox.projectId} />,
          [text.agent]: <Untrusted text={AGENTS[agent] ?? agent} />,
          [text.size]: <Size sandbox={sandbox} />,
          [text.profile]: sandbox.sandbox_profile,
          [text.persistence]: expiresAt === null ? <Idle sandbox={sandbox} /> : null,
          [text.expires]: expiresAt && <Time at={expiresAt} ahead />,
          [text.repository]: sandbox.repository && <Repository sandbox={sandbox} />,
          [text.endUser]: endUserId && <Untrusted text={endUserId} />,
          [text.used]: <Time at={sandbox.lastActiveAt} />,
          [text.created]: <Time at={sandbox.createdAt} />,
          [text.lastWake]: sandbox.lastWake && <LastWake wake={sandbox.lastWake} />,
          [text.wakesFrom]: wakesFrom && (text.wakeFrom[wakesFrom] ?? wakesFrom),
          [text.labels]: <Labels labels={Object.entries(sandbox.metadata)} />,
        }}
      />
    </Section>
  );
}

function Size({ sandbox }: { sandbox: api.Sandbox }) {
  const { allocated_vcpu: vcpu, allocated_memory_gb: memory, allocated_disk_gb: disk, pendingAllocation } = sandbox;
  const pending =
    pendingAllocation && text.sizeOf(pendingAllocation.vcpu, pendingAllocation.memoryGb, pendingAllocation.diskGb);
  return (
    <>
      {text.sizeOf(vcpu, memory, disk)}
      {pending === undefined ? null : <p className={css.quiet}>{text.pending(pending, sandbox.resizing)}</p>}
    </>
  );
}

function Repository({ sandbox: { repository, branch, clone } }: { sandbox: api.Sandbox }) {
  return (
    <>
      <Untrusted text={repository} />
      {branch === null ? null : (
        <>
          {' '}
          <span className={css.quiet}>
            (<Untrusted text={branch} />)
          </span>
        </>
      )}
      {clone === null ? null : (
        <p className={css.quiet}>
          {text.clones[clone.status] ?? clone.status}
          {clone.reason === null ? null : `: ${clone.reason.message}`}
        </p>
      )}
    </>
  );
}

function LastWake({ wake: { at, from, reason } }: { wake: NonNullable<api.Sandbox['lastWake']> }) {
  return (
    <>
      <Time at={at} />, {text.wakeFrom[from] ?? from}
      {reason === null ? null : <p className={css.quiet}>{reason}</p>}
    </>
  );
}

function Labels({ labels }: { labels: readonly [string, unknown][] }) {
  if (labels.length === 0) return <span className={css.quiet}>{text.noLabels}</span>;
  return (
    <ul className={css.labels}>
      {labels.map(([key, value]) => (
        <li key={key}>
          <Untrusted text={key} />=<Untrusted text={String(value)} />
        </li>
      ))}
    </ul>
  );
}

function Delays({ sandbox: { startDelays = [], statusChangedAt } }: { sandbox: api.Sandbox }) {
  const isSlow = useNow() - Date.parse(statusChangedAt) >= SLOW_START_MS;
  if (startDelays.length === 0 || !isSlow) return null;
  return <p className={css.notice}>{startDelays.map((delay) => text.delays[delay] ?? delay).join(' ')}</p>;
}

/** Policy of an idle sandbox, when it sleeps, and its last use. */
function Idle({ sandbox }: { sandbox: api.Sandbox }) {
  const { data: projects = [] } = useQuery(projectsQuery(sandbox.orgId));
  const project = projects.find(({ id }) => id === sandbox.projectId);
  const now = useNow();
  const at = project === undefined ? null : sleepsAt(sandbox, project.defaultIdleMinutes, now);
  return (
    <>
      {text.policies[sandbox.persistencePolicy] ?? sandbox.persistencePolicy}
      {at === null ? null : (
        <p className={css.quiet}>
          {text.sleeps} <Time at={at} ahead />. {text.uses[sandbox.lastActiveBy ?? '']}
        </p>
      )}
    </>
  );
}
