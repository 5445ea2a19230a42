"""Every design but today's: today's with parts replaced.

Reading order: `releases` (what Kafka did before), `reports` (what others reported, each by its number), `dropped_rules`
(one rule taken out), `noted_end` (the state that a mend needs), `cut_off` (a voter without connections, with its
report), `waiting_fetches` (fetches that wait at the leader), `late_requests` (requests that their sender gave up),
`voter_changes` (KIP-853, with its reports and rules), `check_quorum` and `joining` (states that some of those need),
`formatting` (disks that were formatted by mistake), `version_upgrade` (kraft.version from 0 to 1).
"""
