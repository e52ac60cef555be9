// Tab of a sandbox: a terminal with a shell that outlives the page.
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useReducer, useRef, useState } from 'react';
import { useLocation, useNavigate, useSearchParams } from 'react-router';
import { sandboxQuery } from '../../queries/sandboxes.ts';
import { PATHS } from '../../rules/paths.ts';
import {
  AGENT_SESSION,
  letsGo,
  nextState,
  phaseOf,
  retryAfterMs,
  sessionOf,
  shellCommand,
  type TerminalEvent,
} from '../../rules/terminal/attachment.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { session } from '../../session/client.ts';
import { terminalText as text } from '../../text/terminal.ts';
import { toast } from '../../ui/kit/index.ts';
import { Permitted } from '../frame/content.tsx';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import { Attachment } from './attachment.ts';
import { KeyBar } from './toolbar.tsx';
import { Asleep, Consent, Detached, Ended, LinkPanel } from './notices.tsx';
import { Screen } from './screen.ts';
import { Toolbar } from './toolbar.tsx';
import css from './terminal.module.css';

const HIDDEN_CHECK_MS = 10_000;

export function TerminalPage() {
  const [search] = useSearchParams();
  const shell = sessionOf(search);
  const command = search.get('command') || null;
  return (
    <Permitted permission="sandbox.connect">
      <View key={`${shell} ${command}`} {...{ shell, command }} />
    </Permitted>
  );
}

/** @param shell number of the session @param command of the link; null: none */
function View({ shell, command }: { shell: string; command: string | null }) {
  const { sandbox } = useSandboxInView();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [state, dispatch] = useReducer(
    nextState,
    command === null ? ({ name: 'asking', attempt: 0 } as const) : ({ name: 'closed', why: 'consent' } as const),
  );
  /** Command that the person allowed; null: the session's shell. */
  const [allowed, setAllowed] = useState<string | null>(null);
  const [title, setTitle] = useState('');
  const [link, setLink] = useState<string | null>(null);
  const [control, setControl] = useState(false);
  const parent = useRef<HTMLDivElement>(null);
  const after = useRef<HTMLParagraphElement>(null);
  const screen = useRef<Screen | null>(null);
  const attachment = useRef<Attachment | null>(null);

  const open = (): void => dispatch({ type: 'open' });
  /** Command from another page of the console: a link from elsewhere has no state. */
  const { typed } = (useLocation().state ?? {}) as { typed?: string };
  const onKeys = useEffectEvent((keys: string) => {
    if (state.name === 'closed') open();
    else attachment.current?.type(keys);
  });
  const onEvent = useEffectEvent((event: TerminalEvent) => {
    if (event.type === 'opened') {
      screen.current?.clear();
      if (typed !== undefined) {
        attachment.current?.type(typed);
        // Not again after a reload.
        void navigate('.', { replace: true, relative: 'path' });
      }
      const focused = document.activeElement;
      if (focused === document.body || focused?.tagName === 'H1') screen.current?.focus();
    } else {
      screen.current?.release();
      void queries.invalidateQueries({ queryKey: sandboxQuery(sandbox.id).queryKey });
    }
    // Another tab may have signed out.
    if (event.type === 'failed' && event.code === 'unauthenticated') void session.refresh();
    dispatch(event);
  });

  const isShown = state.name !== 'closed' || state.why === 'detached';
  useEffect(() => {
    if (!isShown || parent.current === null) return undefined;
    const made = new Screen({
      parent: parent.current,
      label: text.label(visibleText(sandbox.name)),
      onKeys,
      onResize: (size) => attachment.current?.resize(size),
      onTitle: (given) => setTitle(visibleText(given)),
      onLink: setLink,
      onLeave: () => after.current?.focus(),
      onControlUsed: () => setControl(false),
    });
    screen.current = made;
    return () => {
      screen.current = null;
      made.dispose();
    };
  }, [isShown, sandbox.name]);

  const attempt = state.name === 'asking' ? state.attempt : null;
  const isMoving = phaseOf(sandbox.status) === 'moving';
  useEffect(() => {
    // The page polls a status that changes.
    if (attempt === null || isMoving) return undefined;
    const asked = new AbortController();
    const ask = async (): Promise<void> => {
      let event: TerminalEvent;
      try {
        const { status } = await queries.fetchQuery({ ...sandboxQuery(sandbox.id), staleTime: 0 });
        event = { type: 'status', status };
      } catch (error) {
        const { code = 'connection_failed', message } = error as Error & { code?: string };
        event = { type: 'failed', code, message, lasting: true };
      }
      if (!asked.signal.aborted) dispatch(event);
    };
    const timer = setTimeout(() => void ask(), retryAfterMs(attempt));
    return () => {
      asked.abort();
      clearTimeout(timer);
    };
  }, [attempt, isMoving, sandbox.id, queries]);

  const isAttached = state.name === 'connecting' || state.name === 'open';
  useEffect(() => {
    if (!isAttached || screen.current === null) return undefined;
    const { write, size } = screen.current;
    const lasting = allowed === null;
    const made = new Attachment({
      ...{ sandboxId: sandbox.id, lasting, size, write, onEvent },
      command: allowed ?? (shell === AGENT_SESSION ? null : shellCommand(shell)),
    });
    attachment.current = made;
    return () => {
      attachment.current = null;
      made.close();
    };
  }, [isAttached, sandbox.id, shell, allowed]);

  useEffect(() => {
    if (state.name !== 'open') return undefined;
    let hiddenSince = document.hidden ? Date.now() : null;
    const look = (): void => {
      hiddenSince = document.hidden ? (hiddenSince ?? Date.now()) : null;
      if (letsGo(hiddenSince, Date.now())) onEvent({ type: 'detached' });
    };
    const timer = setInterval(look, HIDDEN_CHECK_MS);
    document.addEventListener('visibilitychange', look);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', look);
    };
  }, [state.name]);

  const start = (chosen: string | null): void => {
    setAllowed(chosen);
    open();
  };
  const startNew = (): void => {
    if (command === null) start(null);
    // A reload then finds the shell again, and does not ask about the command.
    else void navigate(PATHS.sandboxTerminal(sandbox.id, shell), { replace: true });
  };
  if (state.name === 'closed' && state.why === 'consent')
    return <Consent command={command ?? ''} onRun={() => start(command)} onRefuse={() => start(null)} />;
  if (!isShown) return <Asleep onOpen={open} />;
  return (
    <section className={css.terminal}>
      <Toolbar
        session={shell}
        title={title}
        onSession={(next) => void navigate(PATHS.sandboxTerminal(sandbox.id, next))}
        onReadAloud={(on) => screen.current?.setReadAloud(on)}
      >
        <output className={css.state}>
          {state.name === 'closed' || state.name === 'ended' ? null : text.states[state.name]}
        </output>
      </Toolbar>
      {state.name === 'ended' ? <Ended end={state.end} onOpen={open} onNew={startNew} /> : null}
      {state.name === 'closed' ? <Detached onOpen={open} /> : null}
      <div ref={parent} className={css.screen} />
      {link === null ? null : <LinkPanel address={link} onDone={() => setLink(null)} />}
      <KeyBar
        control={control}
        onControl={(on) => {
          setControl(on);
          screen.current?.setControl(on);
        }}
        onPress={(key) => screen.current?.press(key)}
        onCopy={() => screen.current?.copy()}
        onPaste={() => void screen.current?.paste().catch(() => toast(text.keys.noPaste))}
      />
      <p ref={after} className={css.hint} tabIndex={-1}>
        {text.keepsAwake} {text.leave}
      </p>
    </section>
  );
}
