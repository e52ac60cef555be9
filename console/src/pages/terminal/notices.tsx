// Words around a terminal: its state, what a link asks for, and a sandbox that is not awake.
import { phaseOf, type End } from '../../rules/terminal/attachment.ts';
import { visibleLines, visibleText } from '../../rules/visible-text.ts';
import { webAddress } from '../../rules/web-address.ts';
import { en } from '../../text/en.ts';
import { terminalText as text } from '../../text/terminal.ts';
import { Button, buttonClass, Notice } from '../../ui/kit/index.ts';
import { ActionButton } from '../sandboxes/action-button.tsx';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import css from './terminal.module.css';

/** Wakes the sandbox and then opens the terminal; only opens it where it is awake by now. */
function OpenButton({ onOpen }: { onOpen: () => void }) {
  const { sandbox } = useSandboxInView();
  if (phaseOf(sandbox.status) !== 'awake') return <ActionButton action="wake" onDone={onOpen} />;
  return (
    <Button kind="primary" onClick={onOpen}>
      {text.connect}
    </Button>
  );
}

/** @param onOpen opens the terminal, once the sandbox is awake */
export function Asleep({ onOpen }: { onOpen: () => void }) {
  const { status } = useSandboxInView().sandbox;
  const awake = phaseOf(status) === 'awake';
  return (
    <Notice title={text.statusTitle(en.status(status))} hint={awake ? text.awake : text.asleep}>
      <OpenButton onOpen={onOpen} />
    </Notice>
  );
}

/** A link must not run anything by itself. */
export function Consent({ command, onRun, onRefuse }: { command: string; onRun: () => void; onRefuse: () => void }) {
  return (
    <Notice title={text.consentTitle} hint={text.consent}>
      <pre className={css.command}>{visibleLines(command)}</pre>
      <div className={css.buttons}>
        <Button onClick={onRun}>{text.run}</Button>
        <Button kind="primary" onClick={onRefuse}>
          {text.refuse}
        </Button>
      </div>
    </Notice>
  );
}

/** Why the terminal ended, above its output, and what to do about it. */
export function Ended({ end, onOpen, onNew }: { end: End; onOpen: () => void; onNew: () => void }) {
  return (
    <div role="alert" className={css.ended}>
      <span>{text.sentence(end)}</span>
      {end.button === null ? null : end.button === 'wake' ? (
        <OpenButton onOpen={onOpen} />
      ) : (
        <Button kind="primary" onClick={end.button === 'start' ? onNew : onOpen}>
          {text.buttons[end.button]}
        </Button>
      )}
    </div>
  );
}

/** Said after the release in the background. */
export function Detached({ onOpen }: { onOpen: () => void }) {
  return (
    <div className={css.ended}>
      <span>{text.detached}</span>
      <Button kind="primary" onClick={onOpen}>
        {text.reattach}
      </Button>
    </div>
  );
}

/** The address of a link, which the output may have hidden behind other words. */
export function LinkPanel({ address, onDone }: { address: string; onDone: () => void }) {
  const href = webAddress(address);
  return (
    <section aria-label={text.link.title} className={css.link}>
      <span>{text.link.title}</span>
      <code>{visibleText(address)}</code>
      {href === null ? (
        <span>{text.linkRefused}</span>
      ) : (
        <a className={buttonClass()} href={href} target="_blank" rel="noreferrer">
          {text.link.open}
        </a>
      )}
      <Button onClick={onDone}>{text.link.done}</Button>
    </section>
  );
}
