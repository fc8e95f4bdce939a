//! Configurations that change under load, and VMs that die: nothing is forgiven, nobody hangs, nothing leaks.

mod clients;
mod crash;
mod limits;
mod steady;
mod three;
mod waiting;
