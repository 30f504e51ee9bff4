"""``deploy/demo``: play the story; or leave a cluster up, or take it down."""

import argparse
import os
import sys

from deploy.trial.network import left_over
from deploy.trial.place import BIN, place
from deploy.trial.story import Story
from deploy.trial.transcript import Broken, Transcript


def main() -> int:
    """Return the exit code: 0 only if every check held."""
    parser = argparse.ArgumentParser(prog="deploy/demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="stop after act 3, leave it all up")
    parser.add_argument("--stop", action="store_true", help="take a kept cluster down")
    parser.add_argument("--again", action="store_true", help="the same, and play once more")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("deploy/demo makes network namespaces, so it needs root.")
    os.umask(0o022)  # as at boot: guests' users pass through the nodes' directories
    told = Transcript()
    story = Story(place(), told)
    if options.stop:
        story.clear()
        print("The demonstration is gone.")
        return 0
    if story.place.kept.exists() and not options.again:
        sys.exit(
            "deploy/demo --keep has left a cluster up, with what you did in it. “deploy/demo "
            "--stop” takes it down; “deploy/demo --again” does, too, and plays once more."
        )
    if left_over(story.place):
        told.say("an earlier demonstration is taken down first")
    story.clear()
    kept = False
    try:
        story.prepare()
        story.form_cluster()
        story.place_guest()
        story.move_guest()
        kept = options.keep
        if not kept:
            story.crash_coordinator()
            story.fail_over_master()
            story.end()
    except Broken as error:
        told.check(holds=False, what=str(error))
        story.show_logs()
    finally:
        if not kept:
            story.clear()
    if kept:
        story.place.kept.touch()
        _explain(story)
    return told.verdict()


def _explain(story: Story) -> None:
    print("\nThe cluster stays up. On its master, for example:")
    for machine in story.machines:
        print(
            f"  {machine.name}: ip netns exec {machine.spot.namespace} env "
            f"GANTRY_ROOT={machine.spot.root} PATH={BIN}:$PATH bash"
        )
    print("  then: gnt-instance list; gnt-instance console web1; gnt-cluster verify")
    print("deploy/demo --stop takes it down.")


if __name__ == "__main__":
    sys.exit(main())
